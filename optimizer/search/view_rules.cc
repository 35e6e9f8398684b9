// Views of views, as rules: what the arena of backtracking merges as it arises (arena_views.cc), an
// e-graph has to be told.
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/rules/text.h"
#include "optimizer/search/built_in.h"

namespace tenon::optimizer {
namespace {

constexpr int kRankMax = 4;
constexpr int kPartsMax = 4;  // Operands of a Concat, parts of a Split.
constexpr const char* kDims[] = {"k", "l", "m", "n"};
constexpr const char* kPieces[] = {"a", "b", "c", "d"};
constexpr const char* kExtents[] = {"e", "f", "g", "h"};

class Writer {
 public:
  Writer(int rank, int axis) : rank_(rank), axis_(axis) {}

  std::string All() {
    const std::string x = "x" + Shape(kDims[axis_]);
    Rule("slice_of_slice", "i >= 0, j >= 1, p >= 0, q >= 1", x,
         Slice(Slice("x", "i", "j"), "p", "q"), Slice("x", "i+p", "i+q"));
    Rule("slice_of_all", "", x, Slice("x", "0", kDims[axis_]), "x");
    for (int parts = 2; parts <= kPartsMax; ++parts) {
      for (int k = 0; k < parts; ++k) SliceOfConcat(parts, k);
      for (int k = 0; k + 1 < parts; ++k) ConcatOfSlices(parts, k);
      for (int k = 0; k < parts; ++k) SplitIsSlice(parts, k);
    }
    return std::move(text_);
  }

 private:
  std::string Shape(const std::string& extent) const {
    std::string out;
    for (int a = 0; a < rank_; ++a) {
      out += (a == 0 ? "[" : ",") + (a == axis_ ? extent : std::string(kDims[a]));
    }
    return out + "]";
  }
  std::string Slice(const std::string& of, const std::string& start, const std::string& end) const {
    return fmt::format("Slice({}, axis={}, start={}, end={})", of, axis_, start, end);
  }
  std::string Concat(const std::vector<std::string>& pieces) const {
    return fmt::format("Concat({}, axis={})", fmt::join(pieces, ", "), axis_);
  }
  void Rule(const std::string& name, const std::string& attributes, const std::string& inputs,
            const std::string& source, const std::string& target, const std::string& where = "") {
    text_ += fmt::format("rule {}_{}_{}\n{}given {}\nsource {}\ntarget {}\n{}expect proved\n\n",
                         name, rank_, axis_, attributes.empty() ? "" : "attr " + attributes + "\n",
                         inputs, source, target, where.empty() ? "" : "where " + where + "\n");
  }

  // A slice that lies in piece k of several.
  void SliceOfConcat(int parts, int k) {
    std::string inputs, before;
    std::vector<std::string> pieces;
    for (int p = 0; p < parts; ++p) {
      inputs += (p == 0 ? "" : " ") + (kPieces[p] + Shape(kExtents[p]));
      pieces.emplace_back(kPieces[p]);
      if (p < k) before += (p == 0 ? "" : "+") + std::string(kExtents[p]);
    }
    const std::string first = before.empty() ? "0" : before;
    const std::string less = before.empty() ? "" : before + "+";
    Rule(fmt::format("slice_of_piece_{}_{}", parts, k), "i >= 0, j >= 1", inputs,
         Slice(Concat(pieces), less + "i", less + "j"), Slice(kPieces[k], "i", "j"),
         fmt::format("j <= {}", kExtents[k]));
  }

  // Pieces k and k+1 are neighbours in x.
  void ConcatOfSlices(int parts, int k) {
    std::string inputs = "x" + Shape(kDims[axis_]);
    std::vector<std::string> pieces, joined;
    for (int p = 0; p < parts; ++p) {
      if (p == k) {
        pieces.push_back(Slice("x", "i", "j"));
        joined.push_back(Slice("x", "i", "q"));
      } else if (p == k + 1) {
        pieces.push_back(Slice("x", "j", "q"));
      } else {
        inputs += " " + (kPieces[p] + Shape(kExtents[p]));
        pieces.emplace_back(kPieces[p]);
        joined.emplace_back(kPieces[p]);
      }
    }
    Rule(fmt::format("neighbours_of_{}_{}", parts, k), "i >= 0, j >= 1, q >= 1", inputs,
         Concat(pieces), joined.size() == 1 ? joined[0] : Concat(joined));
  }

  void SplitIsSlice(int parts, int k) {
    const std::string part = fmt::format("div({}, {})", kDims[axis_], parts);
    Rule(fmt::format("split_{}_{}", parts, k), "", "x" + Shape(kDims[axis_]),
         fmt::format("Split(x, axis={}, parts={}, index={})", axis_, parts, k),
         Slice("x", fmt::format("{}*{}", k, part), fmt::format("{}*{}", k + 1, part)));
  }

  const int rank_, axis_;
  std::string text_;
};

}  // namespace

std::string ViewRuleText() {
  std::string text;
  for (int rank = 2; rank <= kRankMax; ++rank) {
    for (int axis = 0; axis < rank; ++axis) text += Writer(rank, axis).All();
  }
  return text;
}

std::vector<SearchRule> ViewRules() {
  std::vector<SearchRule> out;
  AddBuiltIn(ViewRuleText(), rules::FloatClass::kExact, out);
  return out;
}

}  // namespace tenon::optimizer
