// E-graphs to extract from: random small ones, large ones that look like those of tensor programs,
// and files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "optimizer/extract/problem.h"

namespace tenon::optimizer::extract {

// At most `classes` classes with up to three nodes each, any of which may be on cycles; some costs
// are 0, some classes empty.
Problem RandomProblem(std::uint64_t seed, int classes);

// The cheapest of all choices, each tried; nothing when none computes the roots.
std::optional<double> BruteForce(const Problem& problem);
// How many choices it tries, at most.
double ChoiceCount(const Problem& problem);

// What equality saturation makes of a tensor program: a long DAG with weights; `variants` of
// classes, which lead to their class and back (as layouts and transposes do) and so close cycles;
// `merged` pairs, one node that computes two classes with a slice each; other nodes over variants.
struct Synthetic {
  int classes = 2000;
  int nodes = 10'000;
  double variants = 0.05;  // Parts of the classes.
  double merged = 0.10;
  std::uint64_t seed = 11;
};
Problem MakeSynthetic(const Synthetic& s);

// How many classes are on a cycle, and in the largest strongly connected component.
struct Cycles {
  int classes = 0, largest = 0;
};
Cycles CountCycles(const Problem& problem);

// egraph-serialize's JSON: {"nodes": {id: {"eclass", "cost", "children": [ids of nodes]}},
// "root_eclasses": [ids]}. `text` of a file, whole; the errors name nodes.
StatusOr<Problem> ParseProblem(const std::string& text);
std::string PrintProblem(const Problem& problem);
// A file as it is or compressed by gzip.
StatusOr<Problem> ReadProblem(const std::string& path);

}  // namespace tenon::optimizer::extract
