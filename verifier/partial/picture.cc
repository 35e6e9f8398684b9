#include "verifier/partial/picture.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/xml.h"

namespace tenon::partial {

namespace {

constexpr double kLeft = 90, kTop = 64, kRight = 24, kBottom = 52, kBetween = 34;
constexpr double kElement = 34, kSymbolic = 78, kRow = 34;  // Widths; heights of rows.

std::string_view Fill(State state) {
  switch (state) {
    case State::kEqual:
      return "#d5efd9";
    case State::kUnequal:
      return "#f2b8ae";
    case State::kUnknown:
      return "#dddddd";
  }
  return "#dddddd";
}

// Where the pieces of an axis begin and end on paper, and what to write there.
struct Scale {
  std::vector<std::pair<double, double>> at;
  std::vector<std::string> ends;  // One more than pieces.
  double length = 0;
};

Scale ScaleOf(const Axis& axis, const base::Symbols& symbols, double symbolic) {
  Scale out;
  for (std::size_t k = 0; k < axis.pieces.size(); ++k) {
    const Piece& piece = axis.pieces[k];
    const Interval i = axis.ordered() ? axis.At(static_cast<int>(k)) : piece.range;
    const Poly length = i.end - i.begin;
    const bool number = length.is_constant() && length.constant() <= 12;
    double width = number ? kElement * double(length.constant()) : symbolic;
    if (!i.begin.is_constant() || !i.end.is_constant()) width = std::max(width, symbolic);
    out.at.emplace_back(out.length, out.length + width);
    out.length += width;
    if (out.ends.empty()) out.ends.push_back(symbols.Print(i.begin));
    out.ends.push_back(symbols.Print(i.end));
  }
  return out;
}

std::string NameOfPiece(const Axis& axis, int piece, const base::Symbols& symbols) {
  const Piece& p = axis.pieces[static_cast<std::size_t>(piece)];
  std::string out;
  for (std::size_t k = 0; k < p.digits.size(); ++k) {
    if (p.digits[k] < 0) continue;
    out += fmt::format("{}digit {} = {}", out.empty() ? "" : ", ", k + 1, p.digits[k]);
  }
  if (!out.empty()) return out;
  const Interval i = axis.At(piece);
  return fmt::format("[{}, {})", symbols.Print(i.begin), symbols.Print(i.end));
}

class Drawing {
 public:
  Drawing(const rules::Rule& pair, const Regions& regions)
      : pair_(pair), regions_(regions), symbols_(pair.graph.symbols()) {
    const int rank = static_cast<int>(regions.axes.size());
    columns_ = rank - 1;
    rows_ = rank - 2;
    if (columns_ >= 0) across_ = ScaleOf(regions.axes[std::size_t(columns_)], symbols_, kSymbolic);
    if (rows_ >= 0) down_ = ScaleOf(regions.axes[std::size_t(rows_)], symbols_, kRow);
    if (columns_ < 0) across_ = {{{0, kSymbolic}}, {"", ""}, kSymbolic};
    if (rows_ < 0) down_ = {{{0, kRow}}, {"", ""}, kRow};
  }

  std::string Draw() {
    // One panel for each choice of the other axes, in the order of the regions.
    std::vector<std::vector<int>> panels;
    for (const Region& r : regions_.regions) {
      std::vector<int> others = Others(r);
      if (std::find(panels.begin(), panels.end(), others) == panels.end()) {
        panels.push_back(std::move(others));
      }
    }
    const double panel = down_.length + kBetween;
    const double width = std::max(kLeft + across_.length + kRight, 420.0);
    const double height = kTop + double(panels.size()) * panel + kBottom;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" height=\"{1:.0f}\">\n"
        "<style>text{{font:11px sans-serif;fill:#333}}.h{{font-size:14px;font-weight:600}}"
        ".m{{text-anchor:middle}}.e{{text-anchor:end}}rect{{stroke:#777;stroke-width:1}}</style>\n",
        width, height);
    const int equal = regions_.Count(State::kEqual);
    out += Text("h", 16, 24, pair_.name);
    out += Text("", 16, 42,
                fmt::format("{} of {} regions are equal; red ones are not", equal,
                            regions_.regions.size()));
    double top = kTop;
    for (const std::vector<int>& others : panels) {
      DrawPanel(out, others, top);
      top += panel;
    }
    return out + "</svg>\n";
  }

 private:
  std::vector<int> Others(const Region& r) const {
    std::vector<int> out(r.pieces.begin(), r.pieces.end());
    out.resize(static_cast<std::size_t>(std::max(rows_, 0)));
    return out;
  }

  void DrawPanel(std::string& out, const std::vector<int>& others, double top) const {
    std::string name;
    for (std::size_t a = 0; a < others.size(); ++a) {
      if (regions_.axes[a].pieces.size() == 1) continue;
      name += fmt::format("{}axis {}: {}", name.empty() ? "" : "; ", a,
                          NameOfPiece(regions_.axes[a], others[a], symbols_));
    }
    if (!name.empty()) out += Text("", kLeft, top - 4, name);
    for (const Region& r : regions_.regions) {
      if (Others(r) != others) continue;
      const auto [x, right] = across_.at[columns_ < 0 ? 0 : std::size_t(r.pieces.back())];
      const auto [y, below] = down_.at[rows_ < 0 ? 0 : std::size_t(r.pieces[std::size_t(rows_)])];
      out += fmt::format(
          "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" fill=\"{}\">"
          "<title>{}</title></rect>\n",
          kLeft + x, top + y, right - x, below - y, Fill(r.state),
          base::EscapedXml(NameOf(r.state) + (r.why.empty() ? "" : ": " + r.why)));
    }
    for (std::size_t k = 0; k < down_.ends.size(); ++k) {
      const double y = k == 0 ? 0 : down_.at[k - 1].second;
      out += Text("e", kLeft - 6, top + y + 4, down_.ends[k]);
    }
    for (std::size_t k = 0; k < across_.ends.size(); ++k) {
      const double x = k == 0 ? 0 : across_.at[k - 1].second;
      out += Text("m", kLeft + x, top + down_.length + 14, across_.ends[k]);
    }
  }

  static std::string Text(std::string_view style, double x, double y, std::string_view text) {
    return fmt::format("<text{} x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
                       style.empty() ? "" : fmt::format(" class=\"{}\"", style), x, y,
                       base::EscapedXml(text));
  }

  const rules::Rule& pair_;
  const Regions& regions_;
  const base::Symbols& symbols_;
  int columns_ = 0, rows_ = 0;
  Scale across_, down_;
};

}  // namespace

std::string Picture(const rules::Rule& pair, const Regions& regions) {
  return Drawing(pair, regions).Draw();
}

}  // namespace tenon::partial
