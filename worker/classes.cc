// Fingerprints are made at few samples, so a class may hold two functions that differ only where
// those samples do not look: one is the Relu of something that they all make positive. Graphs
// without a sign-dependent operator are polynomials of their inputs, and for those equality at a
// random point is equality, up to a chance of 2^-55. So only classes with a sign-dependent member
// are evaluated again, at many samples with biased signs, and split where they differ. A difference
// that even these miss costs a refuted candidate later, never a wrong rule.
#include "worker/classes.h"

#include <algorithm>
#include <iterator>

#include "core/base/check.h"

namespace tenon::worker {
namespace {
constexpr int kBiasedRounds = 16;  // Of kLanes samples.
}  // namespace

void Collector::Begin() {
  out_.universe = e_.universe_;
  out_.mode = e_.options_.mode;
  out_.max_operators = e_.size_;
  out_.record_bytes = e_.record_bytes_;
  out_.graphs_by_size.assign(std::size_t(e_.size_), 0);
}

// From records to classes by names.
Status Collector::Find(const store::RunSource& source, const store::RunTable& runs) {
  Begin();
  RETURN_IF_ERROR(Scan(source, runs));
  for (const Member& m : members_) {
    if (!is_stored(m.id)) decoded_.push_back(graph_of(m.id));
  }
  RETURN_IF_ERROR(Decode());
  const std::size_t named = e_.levels_.table().size();  // In canonical mode: more names follow.
  for (Member& m : members_) m.term = Renamed(TermOf(graph_of(m.id)), renaming_of(m.id));
  RETURN_IF_ERROR(MarkSignDependent());
  RETURN_IF_ERROR(Resample());
  Split();
  std::sort(found_.begin(), found_.end());
  Truncate(named);
  return OkStatus();
}

void Collector::Truncate(std::size_t terms) {
  e_.levels_.table().Truncate(terms);
  e_.signatures_.resize(terms);
}

StatusOr<Enumeration> Collector::Run(const store::RunSource& source, const store::RunTable& runs) {
  RETURN_IF_ERROR(Find(source, runs));
  NameTerms();
  return Finished();
}

StatusOr<FoundClasses> Collector::Part(const store::RunSource& source,
                                       const store::RunTable& runs) {
  CHECK(!e_.options_.keep_all);
  const std::size_t before = e_.levels_.table().size();
  const Status status = Find(source, runs);
  Truncate(before);
  RETURN_IF_ERROR(status);
  return FoundClasses{out_.graphs_by_size,   out_.graphs,        out_.classes,
                      out_.equivalent_pairs, out_.split_classes, std::move(found_)};
}

// Parts need no other look at the records: what they say of a class is final. Only the order of the
// classes, and so of the terms that renamings add, is that of all parts together.
StatusOr<Enumeration> Collector::Join(std::vector<FoundClasses> parts) {
  CHECK(!e_.options_.keep_all);
  Begin();
  for (FoundClasses& part : parts) {
    if (part.graphs_by_size.size() != out_.graphs_by_size.size()) {
      return base::DataLoss("a part of the classes is of another size of graphs");
    }
    for (std::size_t k = 0; k < part.graphs_by_size.size(); ++k) {
      out_.graphs_by_size[k] += part.graphs_by_size[k];
    }
    out_.graphs += part.graphs;
    out_.classes += part.classes;
    out_.equivalent_pairs += part.equivalent_pairs;
    out_.split_classes += part.split_classes;
    std::move(part.members.begin(), part.members.end(), std::back_inserter(found_));
    part = {};
  }
  std::sort(found_.begin(), found_.end());
  for (const std::vector<GraphName>& names : found_) {
    for (const GraphName& name : names) {
      RETURN_IF_ERROR(CheckName(name));
      if (!is_stored(name.graph << e_.renaming_bits_)) decoded_.push_back(name.graph);
    }
  }
  RETURN_IF_ERROR(Decode());
  NameTerms();
  std::vector<bool> seen(e_.levels_.table().size(), false);
  for (const std::vector<TermId>& members : terms_) {
    for (const TermId member : members) {
      if (seen[std::size_t(member)]) return base::DataLoss("a graph is in two classes");
      seen[std::size_t(member)] = true;
    }
  }
  return Finished();
}

Status Collector::CheckName(const GraphName& name) const {
  const std::uint64_t graphs = std::uint64_t{1} << (64 - e_.renaming_bits_ - 1);
  const bool fits = name.graph < graphs &&
                    name.renaming < (e_.renamings_ ? e_.renamings_->count() : 1) &&
                    (!is_stored(name.graph << e_.renaming_bits_) ||
                     name.graph < std::uint64_t(e_.levels_.end(e_.levels_.depth())));
  return fits ? OkStatus() : base::DataLoss("a part of the classes names a graph that cannot be");
}

Enumeration Collector::Finished() {
  StateCommutativity();
  std::sort(terms_.begin(), terms_.end());  // By first members, which differ.
  for (const std::vector<TermId>& members : terms_) {
    out_.class_members.insert(out_.class_members.end(), members.begin(), members.end());
    out_.class_at.push_back(out_.class_members.size());
  }
  out_.table = std::move(e_.levels_.table());
  return std::move(out_);
}

// Counts graphs; classes of one member are done with.
Status Collector::Scan(const store::RunSource& source, const store::RunTable& runs) {
  std::uint64_t classes = 0;
  const auto visit = [&](const Fingerprint&, std::span<const std::uint64_t> ids) -> Status {
    if (++classes % 65536 == 0) {
      RETURN_IF_ERROR(e_.Report("classes", out_.graphs, std::uint64_t(e_.estimate_.graphs)));
    }
    std::uint64_t previous = ~std::uint64_t{0};
    for (std::uint64_t id : ids) {
      if (graph_of(id) == previous || is_input(id)) continue;
      previous = graph_of(id);
      const int size =
          is_stored(id) ? e_.levels_.table().term_size(static_cast<TermId>(previous)) : e_.size_;
      ++out_.graphs_by_size[std::size_t(size - 1)];
      ++out_.graphs;
    }
    if (ids.size() == 1) {
      out_.classes += is_input(ids[0]) ? 0 : 1;
      return OkStatus();
    }
    for (std::uint64_t id : ids) members_.push_back({id, graph::kNoTerm, {}});
    class_at_.push_back(members_.size());
    return OkStatus();
  };
  return store::ForEachClass(source, runs, visit);
}

TermId Collector::AddLast(int operator_index, std::span<const TermId> operands) {
  graph::TermTable& table = e_.levels_.table();
  std::array<TypeId, graph::kUniverseArityMax> types;
  for (std::size_t k = 0; k < operands.size(); ++k) types[k] = table.type_id(operands[k]);
  const Signature s = e_.levels_.SignatureOf(operator_index, {types.data(), operands.size()});
  const OpId op = table.InternOperator(e_.universe_.operators[std::size_t(operator_index)].op);
  const TermId id = table.AddTyped(op, operands, e_.levels_.type_of(s), e_.size_);
  if (std::size_t(id) == e_.signatures_.size()) e_.signatures_.push_back(s);
  CHECK(std::size_t(id) < e_.signatures_.size());
  return id;
}

// Walks the last level again and makes terms of its graphs: of all, or of those in decoded_.
Status Collector::Decode() {
  std::sort(decoded_.begin(), decoded_.end());
  decoded_.erase(std::unique(decoded_.begin(), decoded_.end()), decoded_.end());
  const std::uint64_t units = e_.levels_.unit_count();
  for (std::uint64_t unit = 0; unit < units; ++unit) {
    if (unit % 4096 == 0) RETURN_IF_ERROR(e_.Report("classes", unit, units));
    const auto wanted = [&](std::uint64_t graph) {
      return decoded_terms_.size() < decoded_.size() && decoded_[decoded_terms_.size()] == graph;
    };
    const unsigned shift = 32 - e_.renaming_bits_;
    if (!e_.options_.keep_all && (decoded_terms_.size() == decoded_.size() ||
                                  decoded_[decoded_terms_.size()] >> shift != unit + 1)) {
      continue;
    }
    std::uint64_t child = 0;
    e_.levels_.Walk(unit, [&](const Candidate& c) {
      const std::uint64_t graph = graph_of(e_.IdOf(unit + 1, child++, 0));
      const bool in_class = wanted(graph);
      if (!in_class) {
        if (!e_.options_.keep_all) return;
        const ops::Operator& op = e_.universe_.operators[std::size_t(c.operator_index)].op;
        if (e_.renamings_ && !e_.renamings_->IsCanonical(op, c.operands)) return;
      }
      const TermId id = AddLast(c.operator_index, c.operands);
      if (in_class) decoded_terms_.push_back(id);
    });
  }
  if (decoded_terms_.size() != decoded_.size()) {
    return base::DataLoss(
        "the records of the enumeration name graphs that the universe does not have; they are of "
        "another universe or version, delete them and run again");
  }
  return OkStatus();
}

TermId Collector::TermOf(std::uint64_t graph) const {
  const unsigned shift = 32 - e_.renaming_bits_;
  if (graph >> shift == 0) return static_cast<TermId>(graph);
  const auto it = std::lower_bound(decoded_.begin(), decoded_.end(), graph);
  CHECK(it != decoded_.end() && *it == graph);
  return decoded_terms_[std::size_t(it - decoded_.begin())];
}

TermId Collector::Renamed(TermId term, std::size_t renaming) {
  if (renaming == 0) return term;
  if (term < e_.levels_.end(e_.levels_.depth())) return e_.renamings_->Image(renaming, term);
  const graph::TermTable& table = e_.levels_.table();
  const int o = e_.levels_.operator_of(e_.signatures_[std::size_t(term)]);
  Renamings::Buffer buffer;
  return AddLast(o, e_.renamings_->ImageOf(renaming, table.op(term), table.operands(term), buffer));
}

// The first renaming with the same image.
std::size_t Collector::LeastRenaming(TermId term, std::size_t renaming) const {
  const graph::TermTable& table = e_.levels_.table();
  const Renamings& renamings = *e_.renamings_;
  const auto same = [&](std::size_t r) {
    if (term < e_.levels_.end(e_.levels_.depth())) {
      return renamings.Image(r, term) == renamings.Image(renaming, term);
    }
    Renamings::Buffer a, b;
    return std::ranges::equal(renamings.ImageOf(r, table.op(term), table.operands(term), a),
                              renamings.ImageOf(renaming, table.op(term), table.operands(term), b));
  };
  std::size_t r = 0;
  while (!same(r)) ++r;
  return r;
}

Status Collector::MarkSignDependent() {
  const graph::TermTable& table = e_.levels_.table();
  for (std::size_t k = 0; k < table.size(); ++k) {
    const TermId id = static_cast<TermId>(k);
    bool free = true;
    if (!table.is_input(id)) {
      ASSIGN_OR_RETURN(free, e_.evaluator_.SignFree(e_.signatures_[k]));
      for (TermId operand : table.operands(id)) free = free && sign_free_[std::size_t(operand)];
    }
    sign_free_.push_back(free);
  }
  return OkStatus();
}

Status Collector::Resample() {
  const graph::TermTable& table = e_.levels_.table();
  std::vector<Member*> again;
  for (std::size_t c = 0; c + 1 < class_at_.size(); ++c) {
    const auto first = members_.begin() + long(class_at_[c]);
    const auto last = members_.begin() + long(class_at_[c + 1]);
    if (std::all_of(first, last,
                    [&](const Member& m) { return sign_free_[std::size_t(m.term)]; })) {
      continue;
    }
    for (auto it = first; it != last; ++it) again.push_back(&*it);
  }
  if (again.empty()) return OkStatus();
  // In the order of the tables: by classes, each look-up would miss the caches.
  std::sort(again.begin(), again.end(),
            [](const Member* a, const Member* b) { return a->term < b->term; });
  // What has to be computed: those members and, below the last level, whatever they need.
  const TermId stored = e_.levels_.end(e_.levels_.depth());
  std::vector<bool> needed(std::size_t(stored), false);
  for (const Member* m : again) {
    if (m->term < stored) {
      needed[std::size_t(m->term)] = true;
    } else {
      for (TermId operand : table.operands(m->term)) needed[std::size_t(operand)] = true;
    }
  }
  for (TermId id = stored; id-- > e_.levels_.end(0);) {
    if (!needed[std::size_t(id)]) continue;
    for (TermId operand : table.operands(id)) needed[std::size_t(operand)] = true;
  }
  e_.values_are_biased_ = true;
  for (int round = 0; round < kBiasedRounds; ++round) {
    RETURN_IF_ERROR(e_.Report("samples", std::uint64_t(round), kBiasedRounds));
    e_.evaluator_.SetInputs(BiasedSamples(e_.universe_, e_.options_.seed, round));
    for (TermId id = e_.levels_.end(0); id < stored; ++id) {
      if (!needed[std::size_t(id)]) continue;
      RETURN_IF_ERROR(e_.evaluator_.Keep(id, e_.signatures_[std::size_t(id)]));
    }
    for (Member* m : again) {
      Value value;
      if (m->term < stored) {
        value = e_.evaluator_.value(m->term);
      } else {
        ASSIGN_OR_RETURN(value, e_.evaluator_.Compute(e_.signatures_[std::size_t(m->term)],
                                                      table.operands(m->term)));
      }
      m->biased = Chain(m->biased, e_.hasher_.Hash(table.extents(m->term), value));
    }
  }
  return OkStatus();
}

void Collector::Split() {
  for (std::size_t c = 0; c + 1 < class_at_.size(); ++c) {
    const std::span<Member> all(members_.data() + class_at_[c], class_at_[c + 1] - class_at_[c]);
    std::sort(all.begin(), all.end(), [](const Member& a, const Member& b) {
      return a.biased != b.biased ? a.biased < b.biased : a.id < b.id;
    });
    for (std::size_t first = 0; first < all.size();) {
      std::size_t last = first + 1;
      while (last < all.size() && all[last].biased == all[first].biased) ++last;
      Finish(all.subspan(first, last - first));
      out_.split_classes += last < all.size() ? 1 : 0;
      first = last;
    }
  }
}

// One class, of equal members, by ascending ids.
void Collector::Finish(std::span<const Member> members) {
  std::uint64_t graphs = 0;
  for (std::size_t k = 0; k < members.size(); ++k) {
    const bool again = k > 0 && graph_of(members[k].id) == graph_of(members[k - 1].id);
    graphs += again || is_input(members[k].id) ? 0 : 1;
  }
  out_.classes += graphs > 0 ? 1 : 0;
  if (graphs > 1) out_.equivalent_pairs += graphs * (graphs - 1) / 2;
  if (members.size() > 1) found_.push_back(Named(members));
}

// In canonical mode members came under the names that gave the least fingerprint, which depends on
// the seed: they are renamed so that the first graph has its own names. Where that graph equals
// renamings of itself, the least list decides.
std::vector<GraphName> Collector::Named(std::span<const Member> members) const {
  std::vector<GraphName> best;
  if (!e_.renamings_) {
    for (const Member& m : members) best.push_back({graph_of(m.id), 0});
    return best;
  }
  const Renamings& renamings = *e_.renamings_;
  for (const Member& first : members) {
    if (graph_of(first.id) != graph_of(members[0].id)) break;
    const std::size_t back = renamings.Inverse(renaming_of(first.id));
    std::vector<GraphName> names;
    for (const Member& m : members) {
      const std::size_t renaming = renamings.Compose(back, renaming_of(m.id));
      names.push_back({graph_of(m.id), LeastRenaming(TermOf(graph_of(m.id)), renaming)});
    }
    std::sort(names.begin(), names.end());
    if (best.empty() || names < best) best = names;
  }
  return best;
}

// Makes terms of the names, in an order that does not depend on fingerprints.
void Collector::NameTerms() {
  for (const std::vector<GraphName>& names : found_) {
    terms_.emplace_back();
    for (const GraphName& n : names) terms_.back().push_back(Renamed(TermOf(n.graph), n.renaming));
    std::sort(terms_.back().begin(), terms_.back().end());
  }
}

// Normal order hides that commutative operators are commutative, so canonical mode says it once for
// each: op(a, b) and op(b, a) are in one class. It is not counted.
void Collector::StateCommutativity() {
  if (!e_.renamings_) return;
  graph::TermTable& table = e_.levels_.table();
  for (std::size_t o = 0; o < e_.universe_.operators.size(); ++o) {
    if (!ops::InfoOf(e_.universe_.operators[o].op).commutative) continue;
    const OpId op = table.InternOperator(e_.universe_.operators[o].op);
    for (TermId id = e_.levels_.end(0); id < static_cast<TermId>(table.size()); ++id) {
      const std::span<const TermId> operands = table.operands(id);
      if (table.op_id(id) != op || table.term_size(id) != 1 || operands.size() != 2 ||
          operands[0] == operands[1]) {
        continue;
      }
      const TermId swapped[] = {operands[1], operands[0]};
      const TermId other = table.AddTyped(op, swapped, table.type_id(id), 1);
      const auto it = std::find_if(terms_.begin(), terms_.end(), [&](const auto& members) {
        return std::binary_search(members.begin(), members.end(), id);
      });
      if (it == terms_.end()) {
        terms_.push_back({id, other});
      } else {
        it->push_back(other);
      }
      break;
    }
  }
}

}  // namespace tenon::worker
