// Order matters in three places. Pairs are taken from small to large, and among equals those with
// more variables first, since a rule about a+b derives the one about a+a and not the reverse. Rules
// are dropped from large to small. Pairs that fail alone are repaired from small to large.
//
// Invariant of growing: `base_` is saturated with the kept rules, and with nothing that is not
// proved. A round works on a copy; only if every assumption of the round was proved does the copy
// become the base. Copying is cheap (flat arrays), and assumptions that fail are rare, since
// lifting has tried them on random instances.
//
// It ends: each round settles a form of a candidate or gives up a pair, and there are finitely many
// of both. A round costs a few milliseconds for each candidate (to lift it, and to saturate what it
// changes) and the copy; the final check costs some microseconds a pair.
#include "coordinator/reduce/reduce.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "core/base/check.h"
#include "core/rules/canonical.h"
#include "core/rules/text.h"

namespace tenon::reduce {

using egraph::ClassId;
using egraph::RuleSet;
using graph::TermId;

namespace {

constexpr egraph::SaturationLimits kShared{
    .iterations = 1'000'000, .nodes = SIZE_MAX, .create = false};

struct Pair {
  TermId a, b;  // a comes first in the order of terms.
  friend auto operator<=>(const Pair&, const Pair&) = default;
};

// A lifted rule with its fall-backs.
struct Candidate {
  std::vector<std::shared_ptr<const rules::Rule>> forms;
  std::size_t form = 0;  // The one that counts now; forms.size() when all failed.
  bool proved = false;
  bool sent = false;
  Verdict verdict = Verdict::kUnproved;  // Of the last form that was sent.
  Pair pair;                             // The first pair that showed it.
};

std::string KeyOf(const rules::Rule& rule) {
  auto bytes = rules::CanonicalBytes(rule);
  return bytes.ok() ? *std::move(bytes) : "text:" + rules::PrintRule(rule);
}

int OperatorsOf(const rules::Rule& rule) {
  return rule.graph.OperatorCount(rule.source) + rule.graph.OperatorCount(rule.target);
}

}  // namespace

class Reducer::State {
 public:
  State(const Classes& classes, Lifter lifter, ReduceOptions options)
      : classes_(classes),
        terms_(classes.terms),
        lifter_(std::move(lifter)),
        options_(std::move(options)),
        base_(words_, options_.egraph),
        rules_(words_),
        deriver_(words_, classes.terms, options_.egraph) {
    Measure();
    egraph::TermLoader loader(words_, terms_);
    class_of_ = loader.AddAll(base_);
    base_.ClearChanges();
  }

  StatusOr<std::vector<const rules::Rule*>> Next() {
    CHECK(assumed_.empty());
    while (phase_ != Phase::kDone) {
      RETURN_IF_ERROR(phase_ == Phase::kGrow ? Grow() : Repair());
      if (!assumed_.empty()) return Batch();
    }
    return std::vector<const rules::Rule*>{};
  }

  void Apply(std::span<const Verdict> verdicts) {
    CHECK(verdicts.size() == assumed_.size());
    bool all_proved = true;
    for (std::size_t k = 0; k < assumed_.size(); ++k) {
      Candidate& c = candidates_[assumed_[k]];
      c.sent = true;
      c.verdict = verdicts[k];
      c.proved = verdicts[k] == Verdict::kProved;
      if (c.proved) {
        kept_.push_back(assumed_[k]);
      } else {
        ++c.form;
        all_proved = false;
      }
    }
    assumed_.clear();
    if (phase_ == Phase::kGrow && all_proved) {
      base_ = std::move(*shared_);
    } else {
      const std::int32_t before = UseKept();
      if (phase_ == Phase::kGrow) {
        egraph::Saturator(rules_).Run(base_, kShared, {}, before);
      }
    }
    shared_.reset();
  }

  Reduction Take() {
    CHECK(phase_ == Phase::kDone);
    for (const Candidate& c : candidates_) {
      if (!c.sent) continue;
      ++out_.candidates;
      if (c.proved) {
        ++out_.proved;
      } else {
        ++(c.verdict == Verdict::kRefuted ? out_.refuted : out_.unproved);
      }
    }
    std::vector<std::tuple<int, std::string, std::size_t>> order;
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      const rules::Rule& rule = *FormOf(kept_[k]);
      order.emplace_back(OperatorsOf(rule), KeyOf(rule), k);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [operators, key, k] : order) {
      const Candidate& c = candidates_[kept_[k]];
      KeptRule kept{*FormOf(kept_[k]), k < uses_.size() ? uses_[k] : 0, c.pair.a, c.pair.b};
      out_.rules.push_back(std::move(kept));
    }
    return std::move(out_);
  }

 private:
  enum class Phase : std::uint8_t { kGrow, kRepair, kDone };

  const std::shared_ptr<const rules::Rule>& FormOf(std::size_t candidate) const {
    return candidates_[candidate].forms[candidates_[candidate].form];
  }

  Status Tell(std::string_view phase, std::size_t done, std::size_t total) const {
    if (!options_.progress || options_.progress({phase, done, total})) return OkStatus();
    return absl::CancelledError("minimising was interrupted");
  }

  std::vector<const rules::Rule*> Batch() {
    ++out_.rounds;
    std::vector<const rules::Rule*> batch;
    for (std::size_t c : assumed_) batch.push_back(FormOf(c).get());
    return batch;
  }

  // Makes rules_ the kept rules; returns how many of them were there already, from the first on.
  std::int32_t UseKept() {
    std::size_t same = 0;
    while (same < kept_.size() && same < in_rules_.size() && kept_[same] == in_rules_[same]) ++same;
    rules_.Truncate(static_cast<std::int32_t>(same));
    in_rules_.resize(same);
    for (std::size_t k = same; k < kept_.size(); ++k) AddRule(kept_[k]);
    deriver_.Use(rules_);
    return static_cast<std::int32_t>(same);
  }
  std::int32_t AddRule(std::size_t candidate) {
    in_rules_.push_back(candidate);
    return rules_.Add(FormOf(candidate));
  }

  // ------------------------------------------------------------------------------- the order of
  // pairs

  void Measure() {
    constexpr std::uint32_t kTreeMax = 1'000'000;
    tree_.resize(terms_.size(), 1);
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      std::uint64_t tree = 1;
      for (TermId o : terms_.operands(TermId(t))) tree += tree_[std::size_t(o)];
      tree_[t] = static_cast<std::uint32_t>(std::min<std::uint64_t>(tree, kTreeMax));
    }
    sorted_.assign(classes_.members.begin(), classes_.members.end());
    for (std::size_t c = 0; c < classes_.count(); ++c) {
      std::sort(sorted_.begin() + std::ptrdiff_t(classes_.at[c]),
                sorted_.begin() + std::ptrdiff_t(classes_.at[c + 1]),
                [&](TermId x, TermId y) { return RankOf(x) < RankOf(y); });
      const std::size_t n = classes_.at[c + 1] - classes_.at[c];
      out_.pairs += n * (n - 1) / 2;
    }
  }
  std::tuple<int, std::uint32_t, int, TermId> RankOf(TermId t) const {
    return {terms_.term_size(t), tree_[std::size_t(t)], -std::popcount(terms_.input_mask(t)), t};
  }
  std::tuple<int, int, int, std::uint32_t, TermId, TermId> RankOf(const Pair& p) const {
    const int x = terms_.term_size(p.a), y = terms_.term_size(p.b);
    return {std::max(x, y),
            x + y,
            -std::popcount(terms_.input_mask(p.a) | terms_.input_mask(p.b)),
            tree_[std::size_t(p.a)] + tree_[std::size_t(p.b)],
            p.a,
            p.b};
  }
  void Sort(std::vector<Pair>& pairs) const {
    std::sort(pairs.begin(), pairs.end(),
              [&](const Pair& p, const Pair& q) { return RankOf(p) < RankOf(q); });
  }
  std::span<const TermId> Sorted(std::size_t c) const {
    return std::span(sorted_).subspan(classes_.at[c], classes_.at[c + 1] - classes_.at[c]);
  }

  // For each part of a class that is not joined to a smaller part, one pair that would join it: its
  // smallest term with the smallest term of the class, unless that pair was given up.
  std::vector<Pair> SplitPairs(const egraph::EGraph& g) const {
    std::vector<Pair> out;
    std::vector<TermId> smallest;
    std::vector<std::size_t> seen(g.class_bound(), SIZE_MAX);
    for (std::size_t c = 0; c < classes_.count(); ++c) {
      smallest.clear();
      for (TermId t : Sorted(c)) {
        std::size_t& in = seen[std::size_t(g.Find(class_of_[std::size_t(t)]))];
        if (in == c) continue;
        in = c;
        for (TermId s : smallest) {
          if (given_up_.contains({s, t})) continue;
          out.push_back({s, t});
          break;
        }
        smallest.push_back(t);
      }
    }
    Sort(out);
    return out;
  }

  // ------------------------------------------------------------------------------------------
  // growing

  Status Grow() {
    shared_.emplace(base_);
    saturator_ = std::make_unique<egraph::Saturator>(rules_);
    saturator_->Run(*shared_, kShared, {}, rules_.count());  // What the last joins lead to.
    deriver_.Use(rules_);
    const std::size_t given_up = given_up_.size();
    const std::vector<Pair> pairs = SplitPairs(*shared_);
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      if (k % 256 == 0) RETURN_IF_ERROR(Tell("candidates", k, pairs.size()));
      if (!Joined(pairs[k])) Consider(pairs[k]);
    }
    if (assumed_.empty() && given_up_.size() == given_up) {
      shared_.reset();
      RETURN_IF_ERROR(Prune());
      phase_ = Phase::kRepair;
    }
    return OkStatus();
  }

  bool Joined(const Pair& p) const {
    return shared_->Equal(class_of_[std::size_t(p.a)], class_of_[std::size_t(p.b)]);
  }

  // Unites a pair in the shared e-graph that is derived through terms which that does not hold.
  // What the rules make of it waits for the next assumption: the pairs in between are cheaper to
  // ask for alone.
  void Join(const Pair& p) {
    shared_->Union(class_of_[std::size_t(p.a)], class_of_[std::size_t(p.b)]);
    shared_->Rebuild();
  }

  void Consider(const Pair& p) {
    if (deriver_.Derives(p.a, p.b)) return Join(p);
    const auto assumed = Assume(p);
    if (!assumed) return;
    saturator_->Run(*shared_, kShared, {}, *assumed);
    Join(p);
  }

  // Adds the first form of the pair's rule that has not failed and derives the pair. Gives up the
  // pair when there is none.
  std::optional<std::int32_t> Assume(const Pair& p) {
    const std::size_t index = CandidateOf(p);
    const bool in_use = index != SIZE_MAX &&
                        std::find(in_rules_.begin(), in_rules_.end(), index) != in_rules_.end();
    if (index != SIZE_MAX && !in_use) {
      Candidate& c = candidates_[index];
      for (; c.form < c.forms.size(); ++c.form) {
        const std::int32_t number = AddRule(index);
        deriver_.Use(rules_);
        if (deriver_.Derives(p.a, p.b)) {
          // A rule that was proved and dropped needs no second proof.
          if (c.proved) {
            kept_.push_back(index);
            std::erase(dropped_, index);
          } else {
            assumed_.push_back(index);
          }
          return number;
        }
        rules_.Truncate(number);
        in_rules_.pop_back();
        deriver_.Use(rules_);
        if (c.proved) break;
      }
    }
    given_up_.insert(p);
    return std::nullopt;
  }

  // The number of the candidate that the pair shows, or SIZE_MAX.
  std::size_t CandidateOf(const Pair& p) {
    const graph::Graph g = terms_.ToGraph(std::vector{p.a, p.b});
    std::vector<rules::Rule> forms = lifter_(g, g.outputs()[0], g.outputs()[1]);
    if (forms.empty()) return SIZE_MAX;
    const auto [it, fresh] = by_key_.emplace(KeyOf(forms[0]), candidates_.size());
    if (fresh) {
      Candidate c;
      c.pair = p;
      for (rules::Rule& form : forms) {
        c.forms.push_back(std::make_shared<const rules::Rule>(std::move(form)));
      }
      candidates_.push_back(std::move(c));
    }
    return it->second;
  }

  // ------------------------------------------------------------------------- pruning and repairing

  // Drops rules that the others derive, the largest and latest first.
  Status Prune() {
    std::vector<std::size_t> order = kept_;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
      return OperatorsOf(*FormOf(x)) < OperatorsOf(*FormOf(y));
    });
    std::reverse(order.begin(), order.end());
    for (std::size_t k = 0; k < order.size(); ++k) {
      RETURN_IF_ERROR(Tell("prune", k, order.size()));
      RuleSet others(words_);
      for (std::size_t c : kept_) {
        if (c != order[k]) others.Add(FormOf(c));
      }
      if (!DerivesRule(others, *FormOf(order[k]), options_.egraph)) continue;
      std::erase(kept_, order[k]);
      dropped_.push_back(order[k]);
    }
    UseKept();
    return OkStatus();
  }

  // Of the pairs of the last check, those that the rules do not derive.
  StatusOr<std::vector<Pair>> FailingPairs() {
    std::vector<std::size_t> sizes;
    std::size_t members = 0;
    for (std::size_t c = 0; c < classes_.count(); ++c) {
      sizes.push_back(classes_.of(c).size());
      members += sizes.back();
    }
    const std::size_t total = std::min(out_.pairs, members + options_.last_check.size_max);
    std::vector<Pair> failing;
    std::size_t done = 0;
    Status told = OkStatus();
    out_.pairs_checked =
        VisitPairs(sizes, options_.last_check, [&](std::size_t c, std::size_t i, std::size_t j) {
          if (done++ % 65536 == 0) told = Tell("pairs", done, total);
          const auto of_class = Sorted(c);
          if (!deriver_.Derives(of_class[i], of_class[j])) {
            failing.push_back({of_class[i], of_class[j]});
          }
          return told.ok();
        });
    RETURN_IF_ERROR(told);
    return failing;
  }

  // Asks for pairs alone. What fails is repaired by a dropped rule, or by the pair's own rule.
  Status Repair() {
    deriver_.Use(rules_);
    ASSIGN_OR_RETURN(std::vector<Pair> failing, FailingPairs());
    uses_.assign(deriver_.uses().begin(), deriver_.uses().end());
    Sort(failing);
    const std::size_t kept = kept_.size();
    for (const Pair& p : failing) {
      if (given_up_.contains(p) || deriver_.Derives(p.a, p.b)) continue;
      if (!Restore(p)) Assume(p);
    }
    if (!assumed_.empty() || kept_.size() != kept) return OkStatus();
    out_.underivable = failing.size();
    for (const Pair& p : failing) {
      if (out_.examples.size() < Reduction::kExamplesMax) out_.examples.emplace_back(p.a, p.b);
    }
    phase_ = Phase::kDone;
    return OkStatus();
  }

  // Takes back one dropped rule, or else all of them that played a part, if that derives the pair.
  bool Restore(const Pair& p) {
    if (dropped_.empty()) return false;
    std::vector<std::size_t> wanted;
    {
      RuleSet all(words_);
      for (std::size_t c : in_rules_) all.Add(FormOf(c));
      for (std::size_t c : dropped_) all.Add(FormOf(c));
      PairDeriver deriver(words_, terms_, options_.egraph);
      deriver.Use(all);
      if (!deriver.Derives(p.a, p.b)) return false;
      for (std::size_t k = in_rules_.size(); k < deriver.uses().size(); ++k) {
        if (deriver.uses()[k] > 0) wanted.push_back(dropped_[k - in_rules_.size()]);
      }
    }
    for (std::size_t c : wanted) {
      if (TakeBack(p, std::span(&c, 1))) return true;
    }
    return TakeBack(p, wanted);
  }

  bool TakeBack(const Pair& p, std::span<const std::size_t> wanted) {
    const std::int32_t before = rules_.count();
    for (std::size_t c : wanted) AddRule(c);
    deriver_.Use(rules_);
    if (deriver_.Derives(p.a, p.b)) {
      for (std::size_t c : wanted) {
        kept_.push_back(c);
        std::erase(dropped_, c);
      }
      return true;
    }
    rules_.Truncate(before);
    in_rules_.resize(std::size_t(before));
    deriver_.Use(rules_);
    return false;
  }

  const Classes classes_;
  const graph::TermTable& terms_;
  const Lifter lifter_;
  const ReduceOptions options_;
  Phase phase_ = Phase::kGrow;
  Reduction out_;

  egraph::Vocabulary words_;
  egraph::EGraph base_;                           // All terms, saturated with what is proved.
  std::optional<egraph::EGraph> shared_;          // The same, with this round's assumptions.
  std::vector<ClassId> class_of_;                 // By term, in both.
  RuleSet rules_;                                 // Kept, then assumed.
  std::vector<std::size_t> in_rules_;             // The candidate of each rule in rules_.
  std::unique_ptr<egraph::Saturator> saturator_;  // Of the round.
  PairDeriver deriver_;

  std::vector<Candidate> candidates_;
  std::map<std::string, std::size_t> by_key_;  // By the canonical bytes of their first form.
  std::vector<std::size_t> kept_, dropped_, assumed_;  // Candidates.
  std::set<Pair> given_up_;
  std::vector<std::size_t> uses_;  // By index in kept_.

  std::vector<std::uint32_t> tree_;  // By term: its size as a tree.
  std::vector<TermId> sorted_;       // Members of classes, each class from small to large.
};

Reducer::Reducer(const Classes& classes, Lifter lifter, ReduceOptions options)
    : state_(std::make_unique<State>(classes, std::move(lifter), std::move(options))) {}
Reducer::~Reducer() = default;
StatusOr<std::vector<const rules::Rule*>> Reducer::Next() { return state_->Next(); }
void Reducer::Apply(std::span<const Verdict> verdicts) { state_->Apply(verdicts); }
Reduction Reducer::Take() && { return state_->Take(); }

StatusOr<Reduction> Reduce(const Classes& classes, const Lifter& lifter, const Prover& prover,
                           ReduceOptions options) {
  Reducer reducer(classes, lifter, std::move(options));
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<const rules::Rule*> batch, reducer.Next());
    if (batch.empty()) return std::move(reducer).Take();
    ASSIGN_OR_RETURN(const std::vector<Verdict> verdicts, prover(batch));
    if (verdicts.size() != batch.size()) {
      return base::Internal("the prover returned another number of verdicts than rules");
    }
    reducer.Apply(verdicts);
  }
}

}  // namespace tenon::reduce
