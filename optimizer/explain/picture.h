// Picture: a graph or a rule as it is drawn: boxes with text, and who is drawn from whom.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/rules/rule.h"

namespace tenon::optimizer {

// What a box stands for; decides its colour. The numbers are persisted in reports.
enum class BoxKind : std::uint8_t {
  kInput = 1,     // A tensor from outside.
  kWeight = 2,    // A tensor that is known before run time.
  kMovement = 3,  // Operators by their nature (core/ops/info.h).
  kPointwise = 4,
  kReduction = 5,
  kConstant = 6,
  kOpaque = 7,
  kOutput = 8,  // Where a result leaves the graph.
};

struct Box {
  BoxKind kind = BoxKind::kInput;
  std::string label;          // The name of the operator or the tensor.
  std::string detail;         // Attributes that differ from their defaults; may be empty.
  std::string type;           // "32x64x56x56"; may be empty.
  std::vector<int> operands;  // Boxes above this one, in order; each comes before this one.
  bool ordered = false;       // The order of the operands matters: it is drawn.
  bool fresh = false;         // Drawn with emphasis: not in the picture to compare with.
  friend bool operator==(const Box&, const Box&) = default;
};

struct Picture {
  std::string title;
  std::vector<Box> boxes;
  friend bool operator==(const Picture&, const Picture&) = default;
};

struct PictureOptions {
  std::string title;
  // What an opaque node is called; by default "opaque".
  std::function<std::string(const ops::Opaque&)> opaque_name;
  // Draws what is known before run time as a line of text in the operator that uses it. A model
  // with a box for each weight is illegible.
  bool fold_weights = true;
};

// The nodes that `roots` reach, and a box for each root.
Picture PictureOf(const graph::Graph& g, std::span<const graph::NodeId> roots,
                  const PictureOptions& options);
// The two sides of a rule; the inputs they share have the same labels.
std::vector<Picture> PicturesOf(const rules::Rule& rule);
// Marks the boxes of each picture that have no counterpart with the same text in the other one.
void MarkDifferences(Picture& before, Picture& after);

// Graphviz. Both are complete documents.
std::string ToDot(std::span<const Picture> pictures);
// The pictures side by side, `arrow` ("=>") between them; its text is escaped.
struct SvgOptions {
  std::string title;  // Above all pictures; may be empty.
  std::string arrow = "=>";
};
std::string ToSvg(std::span<const Picture> pictures, const SvgOptions& options);

}  // namespace tenon::optimizer
