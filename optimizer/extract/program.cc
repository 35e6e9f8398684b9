#include "optimizer/extract/program.h"

#include <fmt/format.h>

#include <CbcEventHandler.hpp>
#include <CbcModel.hpp>
#include <CbcSolver.hpp>
#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>
#include <OsiClpSolverInterface.hpp>
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>

#include "core/base/check.h"
#include "core/base/mutex.h"

namespace tenon::optimizer::extract {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Lets the simplex method end when it should. Clp copies it with the model.
class StopSimplex : public ClpEventHandler {
 public:
  explicit StopSimplex(const Stop* stop) : stop_(stop) {}
  int event(Event e) override {
    if (stop_ == nullptr || e != endOfIteration) return -1;
    if (stop_->Asked()) return 5;
    return ++calls_ % 64 == 0 && stop_->Late() ? 5 : -1;
  }
  ClpEventHandler* clone() const override { return new StopSimplex(*this); }

 private:
  const Stop* stop_;
  int calls_ = 0;
};

// The same for branch and cut.
class StopBranching : public CbcEventHandler {
 public:
  explicit StopBranching(const Stop* when) : stop_(when) {}
  CbcAction event(CbcEvent) override { return stop_->Asked() ? CbcEventHandler::stop : noAction; }
  CbcEventHandler* clone() const override { return new StopBranching(*this); }

 private:
  const Stop* stop_;
};

base::Mutex& CbcTurn() {
  static base::Mutex turn;
  return turn;
}

int Continue(CbcModel*, int) { return 0; }

// Rows of a matrix, side by side: the solver copies all of its matrix for each row that it is given
// alone.
struct Rows {
  std::vector<CoinBigIndex> start = {0};
  std::vector<int> index;
  std::vector<double> value, lower, upper;

  int count() const { return int(lower.size()); }
  void Put(int column, double coefficient) {
    index.push_back(column);
    value.push_back(coefficient);
  }
  void End(double least, double most) {
    start.push_back(CoinBigIndex(index.size()));
    lower.push_back(least);
    upper.push_back(most);
  }
};

}  // namespace

struct Program::Impl {
  const Instance& g;
  double scale;
  std::vector<int> node_column, class_column;  // Or -1.
  std::vector<NodeId> column_node;
  OsiClpSolverInterface lp;
  int base_rows = 0;
  std::vector<Cut> cuts;  // Row base_rows + i.
  std::vector<double> x, reduced;
  double objective = 0;

  Impl(const Instance& instance, double s) : g(instance), scale(s) {}
};

Program::Program(const Instance& g, double scale, const std::vector<ClassId>& needed)
    : impl_(std::make_unique<Impl>(g, scale)) {
  Impl& p = *impl_;
  p.node_column.assign(std::size_t(g.num_nodes()), -1);
  p.class_column.assign(std::size_t(g.num_classes()), -1);
  std::vector<double> cost;
  for (NodeId n = 0; n < g.num_nodes(); ++n) {
    if (!g.alive(n)) continue;
    p.node_column[std::size_t(n)] = int(cost.size());
    p.column_node.push_back(n);
    cost.push_back(g.cost(n) / scale);
  }
  for (ClassId c = 0; c < g.num_classes(); ++c) {
    if (g.nodes(c).empty()) continue;
    p.class_column[std::size_t(c)] = int(cost.size());
    cost.push_back(0);
  }
  std::vector<double> lower(cost.size(), 0), upper(cost.size(), 1);
  for (const ClassId c : needed) lower[std::size_t(p.class_column[std::size_t(c)])] = 1;

  Rows rows;
  const auto add = [&](const std::vector<NodeId>& nodes, ClassId less, double least) {
    for (const NodeId n : nodes) rows.Put(p.node_column[std::size_t(n)], 1);
    rows.Put(p.class_column[std::size_t(less)], -1);
    rows.End(least, 0);
  };
  for (ClassId c = 0; c < g.num_classes(); ++c) {
    if (g.nodes(c).empty()) continue;
    add(g.nodes(c), c, 0);
    std::map<ClassId, std::vector<NodeId>> by_child;
    for (const NodeId n : g.nodes(c)) {
      for (const ClassId d : g.children(n)) by_child[d].push_back(n);
    }
    for (const auto& [d, nodes] : by_child) add(nodes, d, -COIN_DBL_MAX);
  }
  p.lp.messageHandler()->setLogLevel(0);
  p.lp.setHintParam(OsiDoReducePrint, true, OsiHintDo);
  const CoinPackedMatrix matrix(false, int(cost.size()), rows.count(), int(rows.index.size()),
                                rows.value.data(), rows.index.data(), rows.start.data(), nullptr);
  p.lp.loadProblem(matrix, lower.data(), upper.data(), cost.data(), rows.lower.data(),
                   rows.upper.data());
  p.base_rows = rows.count();
}

Program::~Program() = default;

void Program::Add(const std::vector<Cut>& cuts) {
  Impl& p = *impl_;
  Rows rows;
  for (const Cut& cut : cuts) {
    const int y = p.class_column[std::size_t(cut.eclass)];
    if (y < 0) continue;
    for (const NodeId n : cut.nodes) {
      const int x = p.node_column[std::size_t(n)];
      if (x >= 0) rows.Put(x, 1);
    }
    rows.Put(y, -1);
    const bool at_least = cut.sense == Cut::Sense::kAtLeast;
    rows.End(at_least ? 0 : -COIN_DBL_MAX, at_least ? COIN_DBL_MAX : 0);
    p.cuts.push_back(cut);
  }
  if (rows.count() == 0) return;
  p.lp.addRows(rows.count(), rows.start.data(), rows.index.data(), rows.value.data(),
               rows.lower.data(), rows.upper.data());
}

std::vector<Cut> Program::DropSlackCuts() {
  Impl& p = *impl_;
  const double* activity = p.lp.getRowActivity();
  std::vector<int> drop;
  std::vector<Cut> keep;
  for (std::size_t i = 0; i < p.cuts.size(); ++i) {
    const int row = p.base_rows + int(i);
    if (std::abs(activity[row]) > 1e-6) {
      drop.push_back(row);
    } else {
      keep.push_back(std::move(p.cuts[i]));
    }
  }
  if (!drop.empty()) p.lp.deleteRows(int(drop.size()), drop.data());
  p.cuts = keep;
  return keep;
}

void Program::Forbid(NodeId n) {
  const int column = impl_->node_column[std::size_t(n)];
  if (column >= 0) impl_->lp.setColUpper(column, 0);
}

Program::Outcome Program::Solve(const Stop& stop) {
  Impl& p = *impl_;
  if (stop.Now()) return Outcome::kStopped;
  StopSimplex handler(&stop);
  p.lp.getModelPtr()->passInEventHandler(&handler);
  p.lp.resolve();
  StopSimplex none(nullptr);
  const bool optimal = p.lp.isProvenOptimal(), infeasible = p.lp.isProvenPrimalInfeasible();
  p.lp.getModelPtr()->passInEventHandler(&none);
  if (infeasible) return Outcome::kInfeasible;
  if (!optimal) return Outcome::kStopped;
  const auto columns = std::size_t(p.lp.getNumCols());
  p.x.assign(p.lp.getColSolution(), p.lp.getColSolution() + columns);
  p.reduced.assign(p.lp.getReducedCost(), p.lp.getReducedCost() + columns);
  p.objective = p.lp.getObjValue() * p.scale;
  return Outcome::kOptimal;
}

double Program::objective() const { return impl_->objective; }

double Program::taken(NodeId n) const {
  const int column = impl_->node_column[std::size_t(n)];
  return column < 0 ? 0 : impl_->x[std::size_t(column)];
}

double Program::needed(ClassId c) const {
  const int column = impl_->class_column[std::size_t(c)];
  return column < 0 ? 0 : impl_->x[std::size_t(column)];
}

double Program::reduced_cost(NodeId n) const {
  const int column = impl_->node_column[std::size_t(n)];
  return column < 0 ? kInfinity : impl_->reduced[std::size_t(column)] * impl_->scale;
}

Program::Integer Program::SolveInteger(double cutoff, int max_branches, const Stop& stop) const {
  const Impl& p = *impl_;
  base::MutexLock turn(CbcTurn());
  Integer result;
  if (stop.Now()) return result;
  OsiClpSolverInterface lp(p.lp);
  for (std::size_t i = 0; i < p.column_node.size(); ++i) lp.setInteger(int(i));
  StopSimplex on_iteration(&stop);
  if (!stop.SecondsLeft()) lp.getModelPtr()->passInEventHandler(&on_iteration);

  CbcModel model(lp);
  CbcSolverUsefulData data;
  CbcMain0(model, data);
  data.noPrinting_ = true;
  data.useSignalHandler_ = false;  // Ctrl-C is for the program to handle.
  model.setLogLevel(0);
  StopBranching on_event(&stop);
  model.passInEventHandler(&on_event);
  const std::string cut = fmt::format("{:.17g}", cutoff / p.scale);
  const std::string branches = std::to_string(max_branches);
  const std::string seconds = fmt::format("{:.2f}", stop.SecondsLeft().value_or(1e9) + 0.01);
  std::vector<const char*> words = {
      "tenon",         "-log",           "0",         "-cutoff", cut.c_str(),
      "-maxNodes",     branches.c_str(), "-timeMode", "elapsed", "-seconds",
      seconds.c_str(), "-solve",         "-quit"};
  CbcMain1(int(words.size()), words.data(), model, Continue, data);

  if (stop.Asked()) return result;
  const double* x = model.bestSolution();
  result.found = x != nullptr;
  result.finished = model.isProvenOptimal() || model.isProvenInfeasible();
  if (result.found) {
    for (std::size_t i = 0; i < p.column_node.size(); ++i) {
      if (x[i] > 0.5) result.taken.push_back(p.column_node[i]);
    }
  }
  if (result.finished) {
    result.bound = result.found ? model.getObjValue() * p.scale : cutoff;
  } else {
    const double bound = model.getBestPossibleObjValue() * p.scale;
    if (0 <= bound && bound < kInfinity) result.bound = std::min(bound, cutoff);
  }
  return result;
}

}  // namespace tenon::optimizer::extract
