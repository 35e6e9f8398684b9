// Matching in graphs and rewriting them: compared with a matcher that tries everything, and by
// value.
#include "core/rules/match.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "core/eval/eval.h"
#include "core/rules/text.h"
#include "tests/support/random_operator.h"

namespace tenon::rules {
namespace {

using graph::Graph;
using graph::InputKind;
using graph::NodeId;

std::shared_ptr<const Rule> Read(std::string_view text) {
  auto rule = ParseRule(text);
  EXPECT_TRUE(rule.ok()) << rule.status() << "\n" << text;
  return std::make_shared<const Rule>(*std::move(rule));
}

CompiledRule Forward(std::string_view text) {
  std::string why;
  auto compiled = CompiledRule::Compile(Read(text), Direction::kForward, &why);
  EXPECT_TRUE(compiled.has_value()) << why << "\n" << text;
  return *std::move(compiled);
}

graph::TensorType Type(const graph::Extents& extents) {
  return {graph::DataType::kFloat, graph::ToShape(extents)};
}

constexpr std::string_view kRules[] = {
    "rule transposed_product given a[m,k] b[k,n] source Transpose(MatMul(a, b)) "
    "target MatMul(Transpose(b), Transpose(a)) both",
    "rule distribute given a[m,k] b[k,n] c[k,n] source Add(MatMul(a, b), MatMul(a, c)) "
    "target MatMul(a, Add(b, c)) both",
    "rule reassociate given a[m,n] b[m,n] c[m,n] source Add(Add(a, b), c) "
    "target Add(a, Add(b, c)) both",
    "rule twice given a[m,n] source Transpose(Transpose(a)) target a",
    "rule relu_concat given a[m,k] b[m,n] source Relu(Concat(a, b, axis=1)) "
    "target Concat(Relu(a), Relu(b), axis=1) both",
    "rule merge given a[m,k] b[k,n] c[k,p] source MatMul(a, b), MatMul(a, c) "
    "target Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, start=0, end=n), "
    "Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, start=n, end=n+p)",
    "rule merge_below_relu given a[m,k] b[k,n] c[k,p] "
    "source Relu(MatMul(a, Transpose(b2))), Relu(MatMul(a, c)) given b2[n,k] "
    "target Slice(Relu(MatMul(a, Concat(Transpose(b2), c, axis=1))), axis=1, start=0, end=n), "
    "Slice(Relu(MatMul(a, Concat(Transpose(b2), c, axis=1))), axis=1, start=n, end=n+p)",
    "rule halves given a[m,2*n] source Concat(Slice(a, axis=1, end=n), "
    "Slice(a, axis=1, start=n, end=2*n), axis=1) target a",
    "rule nested_slices attr s >= 0, e >= 1, t >= 0, f >= 1 given a[m,n] "
    "source Slice(Slice(a, axis=1, start=s, end=e), axis=1, start=t, end=f) "
    "target Slice(a, axis=1, start=s+t, end=s+f)",
    "rule square given a[m,m] source MatMul(a, Transpose(a)) "
    "target Transpose(MatMul(a, Transpose(a)))",
    "rule idempotent given a[m,n] source Relu(a) target Relu(Relu(a))",
};

// ------------------------------------------------------------------ a matcher that tries
// everything

// Bottom up, the opposite way round: all bindings of inputs to nodes and of symbols to numbers up
// to `bound`, and the nodes that the operators then must be.
class NaiveMatcher {
 public:
  NaiveMatcher(const CompiledRule& rule, const Graph& host, std::int64_t bound)
      : rule_(rule),
        g_(rule.rule().graph),
        host_(host),
        bound_(bound),
        live_(host.Reachable(host.outputs())) {}

  std::set<std::vector<NodeId>> Run() {
    nodes_.assign(g_.size(), graph::kNoNode);
    values_.assign(g_.symbols().size(), 0);
    Symbol(1);
    return found_;
  }

 private:
  void Symbol(std::size_t s) {
    if (s == values_.size()) return Input(0);
    for (values_[s] = 0; values_[s] <= bound_; ++values_[s]) {
      if (g_.symbols().kind(base::Symbol(s)) == base::SymbolKind::kDim && values_[s] == 0) continue;
      Symbol(s + 1);
    }
  }
  void Input(std::int32_t k) {
    if (k == std::int32_t(g_.inputs().size())) return Operator(0);
    const NodeId id = g_.input_node(k);
    if (!Matched(id)) return Input(k + 1);
    for (NodeId h : live_) {
      const auto& shape = g_.shape(id);
      if (host_.shape(h).size() != shape.size()) continue;
      bool fits = true;
      for (int a = 0; a < shape.size(); ++a) {
        fits = fits && g_.symbols().Eval(shape[a], values_) == host_.shape(h)[a].constant();
      }
      if (!fits) continue;
      nodes_[std::size_t(id)] = h;
      Input(k + 1);
    }
    nodes_[std::size_t(id)] = graph::kNoNode;
  }
  void Operator(NodeId id) {
    while (id < NodeId(g_.size()) && (!Matched(id) || g_.node(id).is_input())) ++id;
    if (id == NodeId(g_.size())) return Done();
    const graph::Node& n = g_.node(id);
    const ops::Operator op = ops::MapSizes(*n.op, [&](const ops::Size& s) {
      return ops::Size(g_.symbols().Eval(s, values_).value_or(-1));
    });
    std::vector<NodeId> operands;
    for (NodeId o : n.operands) operands.push_back(nodes_[std::size_t(o)]);
    for (NodeId h : live_) {
      if (host_.node(h).is_input() || !(*host_.node(h).op == op)) continue;
      std::vector<NodeId> exchanged = operands;
      if (ops::InfoOf(op).commutative) std::swap(exchanged[0], exchanged[1]);
      if (host_.node(h).operands != operands && host_.node(h).operands != exchanged) continue;
      nodes_[std::size_t(id)] = h;
      Operator(id + 1);
    }
    nodes_[std::size_t(id)] = graph::kNoNode;
  }
  void Done() {
    std::set<NodeId> roots;
    for (NodeId id : rule_.roots()) roots.insert(nodes_[std::size_t(id)]);
    if (roots.size() == rule_.roots().size()) found_.insert(nodes_);
  }
  bool Matched(NodeId id) const { return rule_.matched(id); }

  const CompiledRule& rule_;
  const Graph& g_;
  const Graph& host_;
  const std::int64_t bound_;
  const std::vector<NodeId> live_;
  std::vector<NodeId> nodes_;
  std::vector<std::int64_t> values_;
  std::set<std::vector<NodeId>> found_;
};

// A random graph of matrix operators over inputs with extents up to 4, outputs = what nobody uses.
Graph RandomGraph(std::mt19937& rng, int operators) {
  Graph g;
  const auto draw = [&](int n) { return int(rng() % unsigned(n)); };
  for (int k = 0; k < 3; ++k) {
    g.AddInput(std::string(1, char('a' + k)), k == 2 ? InputKind::kWeight : InputKind::kActivation,
               Type({draw(5) == 0 ? 1 : 2, 2}));
  }
  std::set<NodeId> unused;
  for (int tries = 0; int(g.size()) < 3 + operators && tries < 1000; ++tries) {
    // Mostly recent nodes: patterns are chains.
    const NodeId x = std::max(draw(int(g.size())), draw(int(g.size())));
    const NodeId y = draw(int(g.size()));
    const auto width = g.shape(x)[1].constant();
    const std::vector<ops::Operator> choice{ops::Transpose{},
                                            ops::Relu{},
                                            ops::MatMul{},
                                            ops::Add{},
                                            ops::Concat{draw(2)},
                                            ops::Slice{1, 0, width > 1 ? width - 1 : 1},
                                            ops::Slice{1, width > 1 ? 1 : 0, width}};
    const ops::Operator& op = choice[std::size_t(draw(int(choice.size())))];
    std::vector<NodeId> operands{x};
    if (ops::InfoOf(op).arity_max >= 2) operands.push_back(y);
    const bool wide = width > 2 || g.shape(y)[1].constant() > 2;
    if (ops::NameOf(op) == "Concat" && wide) continue;  // Extents stay at most 4.
    const std::size_t before = g.size();
    const auto id = g.Add(op, operands);
    if (!id.ok() || g.size() == before) continue;
    unused.insert(*id);
    for (NodeId o : operands) unused.erase(o);
  }
  g.SetOutputs({unused.begin(), unused.end()});
  return g;
}

TEST(MatchPropertyTest, AllMatchesAreFoundAndNoOthers) {
  std::mt19937 rng(1);
  int matches = 0;
  for (std::string_view text : kRules) {
    const CompiledRule rule = Forward(text);
    for (int round = 0; round < 60; ++round) {
      const Graph g = RandomGraph(rng, 9);
      std::set<std::vector<NodeId>> found;
      for (const Match& m : Matches(rule, GraphIndex(g))) found.insert(m.nodes);
      EXPECT_EQ(found, NaiveMatcher(rule, g, 4).Run()) << rule.rule().name << " round " << round;
      matches += int(found.size());
    }
  }
  EXPECT_GT(matches, 100);
}

std::vector<eval::Tensor<eval::Exact>> RandomInputs(const Graph& g, std::mt19937& rng) {
  std::vector<eval::Tensor<eval::Exact>> out;
  for (std::int32_t k = 0; k < std::int32_t(g.inputs().size()); ++k) {
    eval::Tensor<eval::Exact> t{graph::Concrete(g.shape(g.input_node(k))), {}};
    for (std::int64_t e = graph::ElementCount(t.extents); e > 0; --e) {
      t.data.push_back(eval::FromFraction(std::int64_t(rng() % 2001) - 1000, 64));
    }
    out.push_back(std::move(t));
  }
  return out;
}

TEST(MatchPropertyTest, RewritingKeepsTheValue) {
  std::mt19937 rng(2);
  int rewritten = 0;
  for (std::string_view text : kRules) {
    for (Direction d : {Direction::kForward, Direction::kBackward}) {
      const auto rule = CompiledRule::Compile(Read(text), d);
      if (!rule) continue;
      for (int round = 0; round < 60; ++round) {
        const Graph g = RandomGraph(rng, 16);
        const auto inputs = RandomInputs(g, rng);
        const auto before = eval::Evaluate(g, g.outputs(), inputs, 7);
        ASSERT_TRUE(before.ok()) << before.status();
        for (const Match& m : Matches(*rule, GraphIndex(g))) {
          const auto after = Rewrite(g, *rule, m);
          if (!after.ok()) {
            EXPECT_EQ(after.status().code(), absl::StatusCode::kFailedPrecondition);
            EXPECT_GT(rule->roots().size(), 1u) << after.status();
            continue;
          }
          ++rewritten;
          const auto values = eval::Evaluate(*after, after->outputs(), inputs, 7);
          ASSERT_TRUE(values.ok()) << values.status();
          ASSERT_EQ(before->size(), values->size());
          for (std::size_t k = 0; k < values->size(); ++k) {
            EXPECT_EQ((*before)[k].extents, (*values)[k].extents);
            EXPECT_EQ((*before)[k].data, (*values)[k].data) << rule->rule().name;
          }
        }
      }
    }
  }
  EXPECT_GT(rewritten, 300);
}

// -------------------------------------------------------------------------------- single
// behaviours

struct Host {
  Graph g;
  NodeId Input(const char* name, graph::Extents e, InputKind kind = InputKind::kActivation,
               graph::DataType dtype = graph::DataType::kFloat) {
    return g.AddInput(name, kind, {dtype, graph::ToShape(e)});
  }
  NodeId Add(const ops::Operator& op, std::initializer_list<NodeId> operands) {
    return *g.Add(op, operands);
  }
  std::size_t Count(const CompiledRule& rule, std::vector<NodeId> outputs) {
    g.SetOutputs(std::move(outputs));
    return Matches(rule, GraphIndex(g)).size();
  }
};

TEST(MatchTest, SizesAreSolvedForTheirSymbols) {
  const CompiledRule odd = Forward(
      "rule r given a[2*n+1] source Relu(a) target Slice(Relu(Relu(a)), axis=0, end=2*n+1)");
  Host h;
  const NodeId r5 = h.Add(ops::Relu{}, {h.Input("a", {5})});
  const NodeId r6 = h.Add(ops::Relu{}, {h.Input("b", {6})});
  const NodeId r1 = h.Add(ops::Relu{}, {h.Input("c", {1})});  // n would be 0, and a dim is not.
  h.g.SetOutputs({r5, r6, r1});
  const auto matches = Matches(odd, GraphIndex(h.g));
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0].values[odd.rule().graph.symbols().Find("n")], 2);
  const auto rewritten = Rewrite(h.g, odd, matches[0]);
  ASSERT_TRUE(rewritten.ok()) << rewritten.status();
  EXPECT_EQ(rewritten->OperatorCount(rewritten->outputs()), 5);
}

TEST(MatchTest, AttributesBindSymbolsAndAreCompared) {
  const CompiledRule same_stride = Forward(
      "rule r attr s >= 1 given x[N,C,H,W] source MaxPool(x, kernel_shape=[3,3], strides=[s,s], "
      "pads=[1,1,1,1]) target Relu(MaxPool(x, kernel_shape=[3,3], strides=[s,s], pads=[1,1,1,1]))");
  Host h;
  const NodeId x = h.Input("x", {1, 2, 8, 8});
  EXPECT_EQ(h.Count(same_stride, {h.Add(ops::MaxPool{{3, 3}, {2, 2}, {1, 1, 1, 1}}, {x})}), 1u);
  EXPECT_EQ(h.Count(same_stride, {h.Add(ops::MaxPool{{3, 3}, {2, 1}, {1, 1, 1, 1}}, {x})}), 0u);
  EXPECT_EQ(h.Count(same_stride, {h.Add(ops::MaxPool{{3, 3}, {2, 2}, {1, 1, 1, 0}}, {x})}), 0u);
  EXPECT_EQ(h.Count(same_stride, {h.Add(ops::MaxPool{{3, 2}, {2, 2}, {1, 1, 1, 1}}, {x})}), 0u);
}

TEST(MatchTest, ConditionsDecide) {
  const CompiledRule wide =
      Forward("rule r given a[m,n] source Relu(a) target Relu(Relu(a)) where n >= m + 2");
  Host h;
  EXPECT_EQ(h.Count(wide, {h.Add(ops::Relu{}, {h.Input("a", {2, 4})})}), 1u);
  EXPECT_EQ(h.Count(wide, {h.Add(ops::Relu{}, {h.Input("b", {2, 3})})}), 0u);
}

TEST(MatchTest, OnlyOneFloatingTypeMatches) {
  const CompiledRule r = Forward("rule r given a[m] b[m] source Add(a, b) target Add(b, Relu(a))");
  for (auto [dtype, count] :
       {std::pair{graph::DataType::kFloat16, 2u}, std::pair{graph::DataType::kInt32, 0u},
        std::pair{graph::DataType::kBool, 0u}}) {
    Host h;
    const NodeId a = h.Input("a", {3}, InputKind::kActivation, dtype);
    const NodeId b = h.Input("b", {3}, InputKind::kActivation, dtype);
    EXPECT_EQ(h.Count(r, {h.Add(ops::Add{}, {a, b})}), count) << graph::NameOf(dtype);
  }
}

TEST(MatchTest, WeightsMatchWhatIsKnownAheadOfTime) {
  const CompiledRule r =
      Forward("rule r given a[m,k] weight w[k,n] source MatMul(a, w) target MatMul(a, Relu(w))");
  Host h;
  const NodeId a = h.Input("a", {2, 2}), b = h.Input("b", {2, 2});
  const NodeId w = h.Input("w", {2, 2}, InputKind::kWeight);
  EXPECT_EQ(h.Count(r, {h.Add(ops::MatMul{}, {a, b})}), 0u);
  EXPECT_EQ(h.Count(r, {h.Add(ops::MatMul{}, {a, h.Add(ops::Transpose{}, {w})})}), 1u);
}

TEST(MatchTest, SymbolicExtentsMatchNoVariable) {
  const CompiledRule r = Forward("rule r given a[m] source Relu(a) target Relu(Relu(a))");
  Host h;
  const base::Symbol n = h.g.symbols().Add("batch", base::SymbolKind::kDim);
  const NodeId a =
      h.g.AddInput("a", InputKind::kActivation, {graph::DataType::kFloat, {base::Poly::Var(n)}});
  EXPECT_EQ(h.Count(r, {h.Add(ops::Relu{}, {a})}), 0u);
}

TEST(MatchTest, SymbolicAttributesMatchNoSymbol) {
  const CompiledRule r = Forward(
      "rule r attr e >= 0 given a[m] source Slice(Relu(a), axis=0, end=e) "
      "target Relu(Slice(a, axis=0, end=e))");
  Host h;
  const base::Symbol n = h.g.symbols().Add("n", base::SymbolKind::kDim);
  const NodeId relu = h.Add(ops::Relu{}, {h.Input("a", {4})});
  EXPECT_EQ(h.Count(r, {h.Add(ops::Slice{0, 0, 3}, {relu})}), 1u);
  EXPECT_EQ(h.Count(r, {h.Add(ops::Slice{0, 0, base::Poly::Var(n)}, {relu})}), 0u);
}

TEST(CompiledRuleTest, ComparingWithoutSizesIsComparingSkeletons) {
  test::Draw draw(5);
  std::vector<ops::Operator> all;
  for (const ops::Operator& listed : ops::AllOperators()) {
    for (int k = 0; k < 6; ++k) {
      if (const auto s = test::TrySample(listed, draw)) all.push_back(s->op);
    }
  }
  int equal = 0;
  for (const ops::Operator& a : all) {
    const SplitOperator split = SplitSizes(a);
    std::vector<std::int64_t> sizes(split.sizes.size());
    CopySizes(a, sizes.data());
    for (std::size_t k = 0; k < sizes.size(); ++k) EXPECT_EQ(sizes[k], split.sizes[k].constant());
    for (const ops::Operator& b : all) {
      const bool same = split.skeleton == SplitSizes(b).skeleton;
      EXPECT_EQ(EqualButSizes(a, b), same);
      equal += same;
    }
  }
  EXPECT_GT(equal, int(all.size()));
}

TEST(MatchTest, OutputsOfOneRuleShareTheirVariables) {
  const CompiledRule merge = Forward(kRules[5]);
  Host h;
  const NodeId a = h.Input("a", {2, 2}), a2 = h.Input("a2", {2, 2}), b = h.Input("b", {2, 3});
  const NodeId c = h.Input("c", {2, 4});
  const NodeId ab = h.Add(ops::MatMul{}, {a, b}), ac = h.Add(ops::MatMul{}, {a, c});
  const NodeId a2c = h.Add(ops::MatMul{}, {a2, c});
  EXPECT_EQ(h.Count(merge, {ab, a2c}), 0u);
  EXPECT_EQ(h.Count(merge, {ab, ac, a2c}), 2u);  // Either may come first.
}

TEST(MatchTest, CommonPartsOfAPatternMustBeOneNode) {
  const CompiledRule r = Forward(
      "rule r given a[m,n] source Add(Relu(a), Transpose(Relu(a))) "
      "target Add(Transpose(Relu(a)), Relu(a)) where m = n");
  Host h;
  const NodeId a = h.Input("a", {2, 2}), b = h.Input("b", {2, 2});
  const NodeId ra = h.Add(ops::Relu{}, {a}), rb = h.Add(ops::Relu{}, {b});
  EXPECT_EQ(h.Count(r, {h.Add(ops::Add{}, {h.Add(ops::Transpose{}, {ra}), ra})}), 1u);
  EXPECT_EQ(h.Count(r, {h.Add(ops::Add{}, {h.Add(ops::Transpose{}, {ra}), rb})}), 0u);
}

TEST(RewriteTest, CyclesAreRefused) {
  const CompiledRule merge = Forward(kRules[5]);
  Host h;
  const NodeId a = h.Input("a", {2, 2}), b = h.Input("b", {2, 2});
  const NodeId ab = h.Add(ops::MatMul{}, {a, b});
  const NodeId aab = h.Add(ops::MatMul{}, {a, ab});  // Its second operand is the other output.
  h.g.SetOutputs({aab});
  const auto matches = Matches(merge, GraphIndex(h.g));
  ASSERT_EQ(matches.size(), 2u);
  for (const Match& m : matches) {
    EXPECT_EQ(Rewrite(h.g, merge, m).status().code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST(RewriteTest, ATargetMayContainItsSource) {
  const CompiledRule idempotent = Forward(kRules[10]);
  Host h;
  const NodeId relu = h.Add(ops::Relu{}, {h.Input("a", {2, 3})});
  const NodeId twice = h.Add(ops::Relu{}, {relu});
  h.g.SetOutputs({twice, relu});
  const auto at = MatchesAt(idempotent, GraphIndex(h.g), relu);
  ASSERT_EQ(at.size(), 1u);
  const auto g = Rewrite(h.g, idempotent, at[0]);
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ(g->OperatorCount(g->outputs()), 3);
}

TEST(RewriteTest, SharedPartsAreReusedAsTheyAre) {
  const CompiledRule r =
      Forward("rule r given a[m] b[m] source Relu(Add(a, b)) target Relu(Relu(Add(a, b)))");
  Host h;
  const NodeId a = h.Input("a", {2}), b = h.Input("b", {2});
  h.g.SetOutputs({h.Add(ops::Relu{}, {h.Add(ops::Add{}, {b, a})})});
  for (const Match& m : Matches(r, GraphIndex(h.g))) {
    const auto g = Rewrite(h.g, r, m);
    ASSERT_TRUE(g.ok()) << g.status();
    EXPECT_EQ(g->OperatorCount(g->outputs()), 3);  // Not both b+a and a+b.
  }
}

TEST(RewriteTest, BuildTargetLeavesUsersAlone) {
  const CompiledRule rule = Forward(kRules[0]);
  Host h;
  const NodeId ab = h.Add(ops::MatMul{}, {h.Input("a", {2, 3}), h.Input("b", {3, 4})});
  const NodeId root = h.Add(ops::Transpose{}, {ab});
  h.g.SetOutputs({root});
  const auto m = MatchesAt(rule, GraphIndex(h.g), root);
  ASSERT_EQ(m.size(), 1u);
  const auto built = BuildTarget(rule, m[0], h.g);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(PrintTerm(h.g, (*built)[0]), "MatMul(Transpose(b), Transpose(a))");
  EXPECT_EQ(h.g.outputs(), std::vector<NodeId>{root});
}

TEST(RewriteTest, ARuleThatChangesTheTypeIsRefused) {
  auto rule = Read("rule r given a[m,n] source Relu(a) target Transpose(Relu(a)) where m = n");
  auto wrong = std::make_shared<Rule>(*rule);
  wrong->where.clear();
  const auto compiled =
      CompiledRule::Compile(std::shared_ptr<const Rule>(wrong), Direction::kForward);
  Host h;
  const NodeId root = h.Add(ops::Relu{}, {h.Input("a", {2, 3})});
  h.g.SetOutputs({root});
  const auto m = MatchesAt(*compiled, GraphIndex(h.g), root);
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(Rewrite(h.g, *compiled, m[0]).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(BuildTarget(*compiled, m[0], h.g).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(CompiledRuleTest, SaysWhyARuleCannotBeMatched) {
  const auto why = [](std::string_view text, Direction d) {
    std::string reason;
    EXPECT_FALSE(CompiledRule::Compile(Read(text), d, &reason).has_value()) << text;
    return reason;
  };
  const auto kBackward = Direction::kBackward;
  EXPECT_EQ(why(kRules[3], kBackward), "an output is a bare input");
  EXPECT_EQ(why("rule r given a[m] b[m] source Add(a, Sub(b, b)) target Relu(a)", kBackward),
            "it does not mention input 'b'");
  EXPECT_EQ(why("rule r given a[m] source Relu(a) target Relu(a)", kBackward),
            "both sides are the same");
  EXPECT_EQ(why("rule r given a[m*n] source Relu(a) target Relu(Relu(a))", kBackward),
            "a size cannot be solved for its symbols");
  EXPECT_EQ(why(kRules[8], kBackward), "a size cannot be solved for its symbols");
}

TEST(RuleIndexTest, RulesAreFoundByTheOperatorOfTheirRoot) {
  std::vector<std::shared_ptr<const Rule>> rules;
  for (std::string_view text : kRules) rules.push_back(Read(text));
  const RuleIndex index = RuleIndex::Of(rules);
  std::size_t sum = 0;
  for (const ops::Operator& op : ops::AllOperators()) {
    for (int k : index.at(op)) {
      EXPECT_EQ(index.rules()[std::size_t(k)].root_op().op->index(), op.index());
    }
    sum += index.at(op).size();
  }
  EXPECT_EQ(sum, index.rules().size());
  EXPECT_EQ(sum, std::size(kRules) + 4);  // Four say `both`.
}

}  // namespace
}  // namespace tenon::rules
