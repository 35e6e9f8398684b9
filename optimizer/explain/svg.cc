#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "core/base/xml.h"
#include "optimizer/explain/layout.h"
#include "optimizer/explain/picture.h"

namespace tenon::optimizer {
namespace {

// Text is measured by counting: no font is at hand. 12 px sans-serif is about this wide.
constexpr double kLabelCharacter = 7.2, kSmallCharacter = 5.6;
constexpr double kLineHeight = 14, kPadding = 8, kMargin = 20, kTitleHeight = 26, kArrowWidth = 70;
constexpr std::size_t kDetailLine = 34;  // Characters.

constexpr std::string_view kStyle =
    "text{font-family:Helvetica,Arial,sans-serif;fill:#222;text-anchor:middle}"
    ".l{font-size:12px;font-weight:600}.d{font-size:10px;fill:#444}.t{font-size:10px;fill:#777}"
    ".n{font-size:9px;fill:#666}.h{font-size:14px;font-weight:600}.c{font-size:12px;fill:#555}"
    "rect{stroke:#8a8f99;stroke-width:1}.f{stroke:#c2571a;stroke-width:2}"
    "path{fill:none;stroke:#6b7280;stroke-width:1.2}.o{stroke-dasharray:4 3}";

std::string_view Fill(BoxKind kind) {
  switch (kind) {
    case BoxKind::kInput:
      return "#ffffff";
    case BoxKind::kOutput:
      return "#f4f5f7";
    case BoxKind::kWeight:
    case BoxKind::kConstant:
      return "#fbf3dc";
    case BoxKind::kMovement:
      return "#ecebf5";
    case BoxKind::kPointwise:
      return "#e0f2e3";
    case BoxKind::kReduction:
      return "#dbeafb";
    case BoxKind::kOpaque:
      return "#ededed";
  }
  return "#ffffff";
}

bool IsTensor(BoxKind kind) {
  return kind == BoxKind::kInput || kind == BoxKind::kWeight || kind == BoxKind::kOutput;
}

// Breaks a text after ", " or "; " so that lines stay short.
std::vector<std::string> Wrap(const std::string& text) {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t stop = text.find_first_of(" ", at);
    const std::size_t end = stop == std::string::npos ? text.size() : stop + 1;
    if (line.size() + (end - at) > kDetailLine && !line.empty()) {
      lines.push_back(line);
      line.clear();
    }
    line += text.substr(at, end - at);
    at = end;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

struct Drawn {
  std::vector<std::vector<std::string>> details;
  std::vector<LayoutSize> sizes;
  Layout layout;
};

Drawn Measure(const Picture& picture) {
  Drawn d;
  std::vector<std::vector<int>> operands;
  for (const Box& b : picture.boxes) {
    d.details.push_back(Wrap(b.detail));
    double width = double(b.label.size()) * kLabelCharacter;
    for (const std::string& line : d.details.back()) {
      width = std::max(width, double(line.size()) * kSmallCharacter);
    }
    width = std::max(width, double(b.type.size()) * kSmallCharacter);
    const double lines = 1 + double(d.details.back().size()) + (b.type.empty() ? 0 : 1);
    d.sizes.push_back({std::max(width + 2 * kPadding, 48.0), lines * kLineHeight + kPadding});
    operands.push_back(b.operands);
  }
  d.layout = LayOut(d.sizes, operands);
  return d;
}

std::string EdgePath(const std::vector<Point>& points, double dx, double dy) {
  std::string path = fmt::format("M{:.1f} {:.1f}", points[0].x + dx, points[0].y + dy);
  for (std::size_t k = 1; k < points.size(); ++k) {
    const Point &a = points[k - 1], &b = points[k];
    const double bend = (b.y - a.y) / 2;
    path += fmt::format(" C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", a.x + dx, a.y + bend + dy,
                        b.x + dx, b.y - bend + dy, b.x + dx, b.y + dy);
  }
  return path;
}

void DrawBox(std::string& out, const Box& box, const std::vector<std::string>& details,
             const LayoutSize& size, const Point& centre) {
  const double left = centre.x - size.width / 2, top = centre.y - size.height / 2;
  out += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{}\" fill=\"{}\""
      " class=\"{}{}\"/>\n",
      left, top, size.width, size.height, IsTensor(box.kind) ? 12 : 4, Fill(box.kind),
      box.fresh && !IsTensor(box.kind) ? "f" : "", box.kind == BoxKind::kOpaque ? " o" : "");
  double y = top + kPadding / 2 + kLineHeight - 4;
  const auto line = [&](std::string_view style, std::string_view text) {
    out += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", style, centre.x,
                       y, base::EscapedXml(text));
    y += kLineHeight;
  };
  line("l", box.label);
  for (const std::string& detail : details) line("d", detail);
  if (!box.type.empty()) line("t", box.type);
}

void DrawPicture(std::string& out, const Picture& picture, const Drawn& drawn, double dx,
                 double dy) {
  for (std::size_t k = 0; k < picture.boxes.size(); ++k) {
    const Box& box = picture.boxes[k];
    for (std::size_t o = 0; o < drawn.layout.edges[k].size(); ++o) {
      const std::vector<Point>& points = drawn.layout.edges[k][o];
      out += fmt::format("<path d=\"{}\" marker-end=\"url(#a)\"/>\n", EdgePath(points, dx, dy));
      if (!box.ordered) continue;
      out += fmt::format("<text class=\"n\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                         points.back().x + dx + 7, points.back().y + dy - 5, o + 1);
    }
  }
  for (std::size_t k = 0; k < picture.boxes.size(); ++k) {
    const Point& c = drawn.layout.centres[k];
    DrawBox(out, picture.boxes[k], drawn.details[k], drawn.sizes[k], {c.x + dx, c.y + dy});
  }
}

}  // namespace

std::string ToSvg(std::span<const Picture> pictures, const SvgOptions& options) {
  std::vector<Drawn> drawn;
  double width = kMargin, height = 0;
  std::vector<double> left, widths;
  for (const Picture& p : pictures) {
    drawn.push_back(Measure(p));
    left.push_back(width);
    widths.push_back(std::max(drawn.back().layout.width, double(p.title.size()) * kLabelCharacter));
    width += widths.back() + kArrowWidth;
    height = std::max(height, drawn.back().layout.height);
  }
  width += kMargin - (pictures.empty() ? 0 : kArrowWidth);
  width = std::max(width, double(options.title.size()) * 8.4 + 2 * kMargin);
  const double top = kMargin + (options.title.empty() ? 0 : kTitleHeight) + kTitleHeight;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<style>{2}</style>\n"
      "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><polygon points=\"0,0.8 8,4 0,7.2\" fill=\"#6b7280\"/>"
      "</marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\" stroke=\"none\" "
      "style=\"stroke:none\"/>\n",
      width, top + height + kMargin, kStyle);
  if (!options.title.empty()) {
    out += fmt::format("<text class=\"h\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", width / 2,
                       kMargin + 10, base::EscapedXml(options.title));
  }
  for (std::size_t p = 0; p < pictures.size(); ++p) {
    const double middle = left[p] + widths[p] / 2;
    out += fmt::format("<text class=\"c\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", middle, top - 12,
                       base::EscapedXml(pictures[p].title));
    const double dx = middle - drawn[p].layout.width / 2;
    DrawPicture(out, pictures[p], drawn[p], dx, top);
    if (p + 1 == pictures.size()) continue;
    const double arrow = (left[p] + widths[p] + left[p + 1]) / 2;
    out += fmt::format("<text class=\"h\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", arrow,
                       top + std::min(height / 2, 300.0), base::EscapedXml(options.arrow));
  }
  return out + "</svg>\n";
}

}  // namespace tenon::optimizer
