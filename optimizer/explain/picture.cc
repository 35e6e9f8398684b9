#include "optimizer/explain/picture.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "core/rules/text.h"

namespace tenon::optimizer {

using graph::NodeId;

namespace {

std::string ShapeText(const graph::Graph& g, const graph::TensorType& type) {
  std::string text;
  for (const base::Poly& p : type.shape) {
    text += text.empty() ? "" : " x ";
    text += g.symbols().Print(p);
  }
  if (text.empty()) text = "scalar";
  if (type.dtype != graph::DataType::kFloat && type.dtype != graph::DataType::kUndefined) {
    text += " " + std::string(graph::NameOf(type.dtype));
  }
  return text;
}

BoxKind KindOf(ops::Nature nature) {
  switch (nature) {
    case ops::Nature::kMovement:
      return BoxKind::kMovement;
    case ops::Nature::kPointwise:
      return BoxKind::kPointwise;
    case ops::Nature::kReduction:
      return BoxKind::kReduction;
    case ops::Nature::kConstant:
      return BoxKind::kConstant;
    case ops::Nature::kOpaque:
      return BoxKind::kOpaque;
  }
  return BoxKind::kOpaque;
}

// "Conv(strides=[2,2])" as "strides=[2,2]".
std::string AttributesOf(const ops::Operator& op, const base::Symbols& symbols) {
  const std::string text = rules::PrintOperator(op, symbols);
  const std::size_t open = text.find('(');
  if (open == std::string::npos) return {};
  return text.substr(open + 1, text.size() - open - 2);
}

class PictureMaker {
 public:
  PictureMaker(const graph::Graph& g, const PictureOptions& options) : g_(g), options_(options) {}

  Picture Make(std::span<const NodeId> roots) {
    picture_.title = options_.title;
    box_of_.assign(g_.size(), -1);
    const std::vector<NodeId> live = g_.Reachable(roots);
    std::vector<bool> root(g_.size(), false);
    for (const NodeId id : roots) root[std::size_t(id)] = true;
    for (const NodeId id : live) {
      if (options_.fold_weights && g_.node(id).weights_only && !root[std::size_t(id)]) continue;
      box_of_[std::size_t(id)] = int(picture_.boxes.size());
      picture_.boxes.push_back(BoxOf(id));
    }
    for (std::size_t k = 0; k < roots.size(); ++k) {
      Box out;
      out.kind = BoxKind::kOutput;
      out.label = roots.size() == 1 ? "output" : fmt::format("output {}", k + 1);
      out.operands = {box_of_[std::size_t(roots[k])]};
      picture_.boxes.push_back(std::move(out));
    }
    return std::move(picture_);
  }

 private:
  Box BoxOf(NodeId id) const {
    const graph::Node& n = g_.node(id);
    Box box;
    box.type = ShapeText(g_, *n.type);
    if (n.is_input()) {
      const graph::Input& input = g_.input(n.input);
      box.kind = input.kind == graph::InputKind::kWeight ? BoxKind::kWeight : BoxKind::kInput;
      box.label = input.name;
      return box;
    }
    const ops::Info& info = ops::InfoOf(*n.op);
    box.kind = KindOf(info.nature);
    box.label = info.name;
    if (const auto* opaque = std::get_if<ops::Opaque>(n.op.get())) {
      box.label = options_.opaque_name ? options_.opaque_name(*opaque) : "opaque";
      if (opaque->output > 0) box.detail = fmt::format("output {}", opaque->output);
    } else {
      box.detail = AttributesOf(*n.op, g_.symbols());
    }
    for (const NodeId o : n.operands) {
      if (box_of_[std::size_t(o)] >= 0) {
        box.operands.push_back(box_of_[std::size_t(o)]);
      } else {
        box.detail += box.detail.empty() ? "" : "; ";
        box.detail += "weight " + ShapeText(g_, *g_.node(o).type);
      }
    }
    box.ordered = box.operands.size() > 1 && !info.commutative;
    return box;
  }

  const graph::Graph& g_;
  const PictureOptions& options_;
  std::vector<int> box_of_;
  Picture picture_;
};

std::string DotEscape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string_view DotColour(BoxKind kind) {
  switch (kind) {
    case BoxKind::kInput:
    case BoxKind::kOutput:
      return "#ffffff";
    case BoxKind::kWeight:
    case BoxKind::kConstant:
      return "#f6edd2";
    case BoxKind::kMovement:
      return "#e7e7ee";
    case BoxKind::kPointwise:
      return "#dcefdc";
    case BoxKind::kReduction:
      return "#d6e6f5";
    case BoxKind::kOpaque:
      return "#eeeeee";
  }
  return "#ffffff";
}

}  // namespace

Picture PictureOf(const graph::Graph& g, std::span<const NodeId> roots,
                  const PictureOptions& options) {
  return PictureMaker(g, options).Make(roots);
}

std::vector<Picture> PicturesOf(const rules::Rule& rule) {
  PictureOptions options{.title = "source", .opaque_name = {}, .fold_weights = false};
  std::vector<Picture> out{PictureOf(rule.graph, rule.source, options)};
  options.title = "target";
  out.push_back(PictureOf(rule.graph, rule.target, options));
  return out;
}

void MarkDifferences(Picture& before, Picture& after) {
  const auto key = [](const Box& b) { return std::tuple(b.kind, b.label, b.detail, b.type); };
  const auto mark = [&](Picture& in, const Picture& other) {
    std::map<decltype(key(Box())), int> there;
    for (const Box& b : other.boxes) ++there[key(b)];
    for (Box& b : in.boxes) b.fresh = --there[key(b)] < 0;
  };
  mark(before, after);
  mark(after, before);
}

std::string ToDot(std::span<const Picture> pictures) {
  std::string out =
      "digraph tenon {\n  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\", "
      "fontsize=11];\n  edge [fontsize=9];\n";
  for (std::size_t p = 0; p < pictures.size(); ++p) {
    out += fmt::format("  subgraph cluster_{} {{\n    label=\"{}\";\n", p,
                       DotEscape(pictures[p].title));
    const std::vector<Box>& boxes = pictures[p].boxes;
    for (std::size_t k = 0; k < boxes.size(); ++k) {
      const Box& b = boxes[k];
      std::string text = DotEscape(b.label);
      if (!b.detail.empty()) text += "\\n" + DotEscape(b.detail);
      if (!b.type.empty()) text += "\\n" + DotEscape(b.type);
      out += fmt::format("    p{}n{} [label=\"{}\", fillcolor=\"{}\"{}];\n", p, k, text,
                         DotColour(b.kind), b.fresh ? ", penwidth=2" : "");
      for (std::size_t o = 0; o < b.operands.size(); ++o) {
        out += fmt::format("    p{}n{} -> p{}n{}{};\n", p, b.operands[o], p, k,
                           b.ordered ? fmt::format(" [headlabel=\"{}\"]", o + 1) : "");
      }
    }
    out += "  }\n";
  }
  return out + "}\n";
}

}  // namespace tenon::optimizer
