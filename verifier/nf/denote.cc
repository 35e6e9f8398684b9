// The normal form as a Domain (core/ops/domain.h). An Index is a polynomial, a Bool a conjunction
// of conditions, a Scalar an Nf. The domain knows what holds where it stands (`context`): ranges of
// the enclosing sums and the conditions of the enclosing Selects. Only Reindex asks about it.
#include "verifier/nf/denote.h"

#include <bit>
#include <type_traits>

#include "core/ops/operator.h"
#include "verifier/nf/unsupported.h"

namespace tenon::nf {
namespace {

using base::SymbolKind;
using graph::Graph;
using graph::NodeId;

// Blocks of a constant number are written out; the same bound as for unrolled sums.
constexpr std::int64_t kBlocksMax = 64;

class NfDomain {
 public:
  using Scalar = Nf;
  using Index = Poly;
  using Bool = Guards;

  NfDomain(Session& session, IndexPlan& plan, IndexPlan::Side side, Guards context)
      : s_(session), plan_(plan), side_(side), context_(std::move(context)) {}

  Session& session() { return s_; }

  Index Const(std::int64_t v) { return v; }
  Index Value(const ops::Size& size) { return s_.Substitute(size, s_.eliminated); }
  Index FloorDiv(const Index& n, const Index& d) { return Valid(s_.symbols.FloorDiv(n, d)); }
  Bool Lt(const Index& a, const Index& b) { return {base::Lt(a, b)}; }
  Bool Le(const Index& a, const Index& b) { return {base::Ge(b, a)}; }
  Bool Eq(const Index& a, const Index& b) { return {base::Eq(a, b)}; }
  Bool And(const Bool& a, const Bool& b) { return Joined(a, b); }
  bool IsOne(const Index& i) { return i.is_constant(1); }
  // Conditions on sizes come from shape inference (graph::Graph::Requirements).
  void Require(const Bool&, const char*) {}
  bool Static(bool ok, const char* why) {
    if (!ok) throw Unsupported(why);
    return ok;
  }

  Scalar Lit(std::int64_t v) { return Constant(v); }
  Scalar Real(double v) {
    if (const auto exact = Rational::FromDouble(v)) return Constant(*exact);
    for (std::size_t h = 0; h < s_.heads.size(); ++h) {
      const HeadInfo& info = s_.heads[h];
      if (info.kind == HeadInfo::Kind::kReal &&
          std::bit_cast<std::uint64_t>(info.value) == std::bit_cast<std::uint64_t>(v)) {
        return Access(static_cast<Head>(h), {});
      }
    }
    HeadInfo info;
    info.kind = HeadInfo::Kind::kReal;
    info.value = v;
    info.positive = info.non_negative = v > 0;
    s_.heads.push_back(std::move(info));
    return Access(static_cast<Head>(s_.heads.size() - 1), {});
  }
  Scalar InverseOf(const Index& n) {
    Valid(n);
    if (n.is_constant() && n.constant() != 0) return Constant(Rational(1, n.constant()));
    Nf one = Constant(1);
    if (s_.IsGlobal(n) && s_.facts.Implied({}, base::Ge(n, Poly(1)))) {
      one[0].size = n;
      return one;
    }
    one[0].count = n;
    return nf::Apply(ops::Fn::kRecip, std::move(one));
  }
  Scalar Add(const Scalar& a, const Scalar& b) { return Plus(a, b); }
  Scalar Sub(const Scalar& a, const Scalar& b) {
    return Plus(a, s_.fault == Fault::kSubIsAdd ? b : Scale(b, -1));
  }
  Scalar Mul(const Scalar& a, const Scalar& b) { return s_.Product(a, b); }
  Scalar Div(const Scalar& a, const Scalar& b) {
    return s_.Product(a, nf::Apply(ops::Fn::kRecip, b));
  }
  Scalar Neg(const Scalar& a) { return s_.fault == Fault::kNegIsNothing ? a : Scale(a, -1); }
  Scalar Apply(ops::Fn fn, const Scalar& a) {
    return nf::Apply(s_.fault == Fault::kOneFunction ? ops::Fn::kSigmoid : fn, a);
  }

  template <class T, class E>
  Scalar Select(const Bool& b, T then, E otherwise) {
    Guards open;
    for (const Condition& c : b) {
      if (!AddGuard(open, c)) return otherwise();
    }
    if (open.empty()) return then();
    Guards kept = open;
    if (s_.fault == Fault::kDropSelectGuard) kept.pop_back();
    Scalar out = Guarded(Within(open, then), kept);
    // The complement as disjoint pieces: the first condition fails, or it holds and the second
    // fails, ..
    const bool simple = open.size() == 1 && open[0].kind == Condition::Kind::kGe0;
    const Scalar no = simple ? Within(base::Negate(open[0]), otherwise) : otherwise();
    if (no.empty()) return out;
    Guards held;
    for (const Condition& c : open) {
      for (const Condition& n : base::Negate(c)) {
        Guards piece = held;
        piece.push_back(n);
        out = Plus(std::move(out), Guarded(no, piece));
      }
      held.push_back(c);
    }
    return out;
  }

  template <class F>
  Scalar Sum(const Index& n, F f) {
    Valid(n);
    if (n.is_constant(0)) return {};
    if (n.is_constant(1)) return f(Poly(0));
    const Index count = s_.fault == Fault::kSumIsOneShort ? n - 1 : n;
    const IndexPlan::Made k = plan_.Make(s_, side_, count, SymbolKind::kBinder);
    Scalar out = Within(k.range, [&] { return f(k.value); });
    for (Term& t : out) {
      t.binders.insert(t.binders.begin(), k.symbols.begin(), k.symbols.end());
      t.guards.insert(t.guards.begin(), k.range.begin(), k.range.end());
    }
    return out;
  }

  template <class A, class V>
  Scalar MaxOver(const ops::Short<Index>& n, A admits, V value) {
    Atom atom;
    atom.kind = Atom::Kind::kMax;
    ops::Short<Index> at;
    for (const Index& extent : n) {
      if (extent.is_constant(1)) {
        at.push_back(Poly(0));
        continue;
      }
      const IndexPlan::Made k = plan_.Make(s_, side_, extent, SymbolKind::kBinder);
      at.push_back(k.value);
      atom.binders.insert(atom.binders.end(), k.symbols.begin(), k.symbols.end());
      atom.guards.insert(atom.guards.end(), k.range.begin(), k.range.end());
    }
    bool possible = true;
    Guards admitted = admits(at);
    if (s_.fault == Fault::kMaximumOfAnybody) admitted.clear();
    for (const Condition& c : admitted) possible = AddGuard(atom.guards, c) && possible;
    if (!possible) throw Unsupported("a maximum over nothing");
    atom.body = std::make_shared<const Nf>(Within(atom.guards, [&] { return value(at); }));
    Term t;
    t.atoms.push_back(std::move(atom));
    return {t};
  }

  template <class F>
  Scalar Block(const Index& i, const Index& blocks, const Index& size, F f) {
    if (blocks.is_constant(1) || s_.fault == Fault::kFirstBlockOnly) return f(Poly(0));
    if (size.is_constant(1)) return f(i);
    if (!blocks.is_constant() || blocks.constant() < 1 || blocks.constant() > kBlocksMax) {
      return f(FloorDiv(i, size));
    }
    Scalar out;
    for (std::int64_t b = 0; b < blocks.constant(); ++b) {
      Guards here;
      if (b > 0) AddGuard(here, base::Ge(i, Poly(b) * size));
      if (b + 1 < blocks.constant()) AddGuard(here, base::Lt(i, Poly(b + 1) * size));
      out = Plus(std::move(out), Guarded(Within(here, [&] { return f(Poly(b)); }), here));
    }
    return out;
  }

  template <class F>
  Scalar Reindex(const ops::Short<Index>& from, const ops::Short<Index>& to,
                 const ops::Short<Index>& at, F f) {
    return f(RowMajorPosition(s_, plan_, context_, from, to, at));
  }

  Scalar Element(const Graph& g, NodeId id, const ops::Short<Index>& at);

 private:
  // What f returns where `more` holds, too.
  template <class F>
  Scalar Within(const Guards& more, F f) {
    const std::size_t size = context_.size();
    context_.insert(context_.end(), more.begin(), more.end());
    Scalar out = f();
    context_.resize(size);
    return out;
  }

  Session& s_;
  IndexPlan& plan_;
  const IndexPlan::Side side_;
  Guards context_;
};
static_assert(ops::Domain<NfDomain>);

// The operands of a node, sizes rewritten by what the hypotheses eliminate.
class Operands {
 public:
  Operands(NfDomain& d, const Graph& g, const graph::Node& node) : d_(d), g_(g), node_(node) {
    for (NodeId id : node.operands) {
      ops::Short<Poly> extents;
      for (const Poly& p : g.shape(id)) extents.push_back(d.Value(p));
      extents_.push_back(std::move(extents));
    }
  }
  int size() const { return static_cast<int>(node_.operands.size()); }
  int rank(int k) const { return extents(k).size(); }
  const Poly& extent(int k, int a) const { return extents(k)[a]; }
  const ops::Short<Poly>& extents(int k) const { return extents_[static_cast<std::size_t>(k)]; }
  Nf operator()(int k, const ops::Short<Poly>& at) const {
    return d_.Element(g_, node_.operands[static_cast<std::size_t>(k)], at);
  }

 private:
  NfDomain& d_;
  const Graph& g_;
  const graph::Node& node_;
  std::vector<ops::Short<Poly>> extents_;
};

ops::Transpose Inverse(const ops::Transpose& op) {
  ops::Transpose inverse = op;
  for (int a = 0; a < op.perm.size(); ++a) inverse.perm[static_cast<int>(op.perm[a])] = a;
  return inverse;
}

Nf NfDomain::Element(const Graph& g, NodeId id, const ops::Short<Index>& at) {
  s_.Step();
  const graph::Node& node = g.node(id);
  const Head head = s_.fault == Fault::kInputsAreOne ? 0 : node.input;
  if (node.is_input()) return Access(head, std::vector<Poly>(at.begin(), at.end()));
  const Operands in(*this, g, node);
  return std::visit(
      [&](const auto& op) -> Nf {
        if constexpr (std::is_same_v<std::decay_t<decltype(op)>, ops::Transpose>) {
          if (s_.fault == Fault::kInverseTranspose) return Inverse(op).Element(*this, in, at);
        }
        return op.Element(*this, in, at);
      },
      *node.op);
}

}  // namespace

void AddInputs(Session& s, const Graph& g) {
  for (const graph::Input& input : g.inputs()) {
    HeadInfo info;
    info.name = input.name;
    s.heads.push_back(std::move(info));
  }
}

Nf Denote(Session& s, const Graph& g, NodeId node, const ops::Short<Poly>& at,
          const Guards& context, IndexPlan& plan, IndexPlan::Side side) {
  plan.Begin(side);
  return NfDomain(s, plan, side, context).Element(g, node, at);
}

}  // namespace tenon::nf
