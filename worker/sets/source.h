// SetSource: where the nodes of the walk over sets come from: the operators and values of a
// universe under one of its semantics.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "worker/sets/node_table.h"

namespace tenon::worker {

// A graph of depth() + 1 operators one of which reaches all others.
struct LastGraph {
  std::uint64_t fingerprint = 0;  // As ClosedSet::sum.
  std::uint64_t unit = 0;         // Its place: a unit, and the number in it.
  std::uint32_t number = 0;
  int outputs = 1;
  std::uint64_t orders = 1;
};

struct LevelSize {
  double graphs = 0;       // That have a node which reaches all others: new nodes.
  double bytes = 0;        // What keeping them would take.
  double cpu_seconds = 0;  // To evaluate them.
};

// Thread-compatible.
class SetSource {
 public:
  virtual ~SetSource() = default;

  virtual const NodeTable& nodes() const = 0;
  // The nodes of the table reach at most so many nodes, themselves included.
  virtual int depth() const = 0;
  // Adds all nodes of the next depth.
  virtual Status BuildLevel() = 0;
  // What the next depth would take, from a sample.
  virtual StatusOr<LevelSize> EstimateLevel() = 0;

  // Calls `visit` for each graph of depth() + 1 operators, one of which reaches all others, of the
  // units that are wanted, in a fixed order. An error of `visit` ends the walk.
  using Wanted = std::function<bool(std::uint64_t unit)>;
  using Visit = std::function<Status(const LastGraph&)>;
  virtual Status WalkLast(const Wanted& wanted, const Visit& visit) = 0;

  // The text of a result: its operator and operands, nested.
  virtual std::string TextOf(ResultNumber result) const = 0;
  // The texts of the outputs of the graph that WalkLast is visiting; only within the visit.
  virtual std::vector<std::string> TextsOfLast() const = 0;
};

}  // namespace tenon::worker
