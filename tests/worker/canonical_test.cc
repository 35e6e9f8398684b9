// Canonical mode against exhaustive mode: every graph renamed in all ways and put into normal
// order.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "proto/convert/universe.h"
#include "worker/enumerate.h"

namespace tenon::worker {
namespace {

// Texts in which commutative operands are in the order of their texts: a normal form of its own.
class NormalText {
 public:
  NormalText(const graph::TermTable& table, std::vector<int> renaming)
      : table_(table), renaming_(std::move(renaming)) {}
  const std::string& operator()(TermId id) {
    const auto it = known_.find(id);
    return it != known_.end() ? it->second : known_[id] = Make(id);
  }

 private:
  std::string Make(TermId id) {
    if (table_.is_input(id)) return table_.input(renaming_[std::size_t(id)]).name;
    std::vector<std::string> operands;
    for (TermId o : table_.operands(id)) operands.push_back((*this)(o));
    if (ops::InfoOf(table_.op(id)).commutative) std::sort(operands.begin(), operands.end());
    std::string text = std::to_string(table_.op_id(id)) + "(";
    for (const std::string& o : operands) text += o + ",";
    return text + ")";
  }
  const graph::TermTable& table_;
  std::vector<int> renaming_;
  std::map<TermId, std::string> known_;
};

// Of inputs of one type and kind.
std::vector<std::vector<int>> AllRenamings(const graph::Universe& u) {
  std::vector<int> p;
  for (std::size_t k = 0; k < u.inputs.size(); ++k) p.push_back(int(k));
  std::vector<std::vector<int>> out;
  do {
    bool fits = true;
    for (std::size_t k = 0; k < p.size(); ++k) {
      const auto& to = u.inputs[std::size_t(p[k])];
      fits = fits && to.kind == u.inputs[k].kind && to.extents == u.inputs[k].extents;
    }
    if (fits) out.push_back(p);
  } while (std::next_permutation(p.begin(), p.end()));
  return out;
}

// What stands for a graph up to renaming and order: its least text.
std::vector<std::string> OrbitKeys(const Enumeration& e) {
  std::vector<std::string> keys(e.table.size());
  for (const std::vector<int>& renaming : AllRenamings(e.universe)) {
    NormalText text(e.table, renaming);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const std::string& t = text(static_cast<TermId>(k));
      if (keys[k].empty() || t < keys[k]) keys[k] = t;
    }
  }
  return keys;
}

void ExpectConsistent(const std::string& name, int size) {
  const auto u = convert::LoadUniverse(name);
  ASSERT_TRUE(u.ok());
  const auto all = Enumerate(*u, {.max_operators = size});
  const auto canonical =
      Enumerate(*u, {.max_operators = size, .mode = Mode::kCanonical, .shards = 3});
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_TRUE(canonical.ok()) << canonical.status();

  const std::vector<std::string> keys = OrbitKeys(*all);
  // Ids ascend with sizes, so a key is met first at its own size. It may come again: (a + b) * (b +
  // a) has three operators, and in normal order two.
  std::set<std::string> seen;
  std::vector<std::uint64_t> by_size(std::size_t(size) + 1, 0);
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (seen.insert(keys[k]).second) {
      ++by_size[std::size_t(all->table.term_size(static_cast<TermId>(k)))];
    }
  }
  for (int s = 1; s <= size; ++s) {
    EXPECT_EQ(canonical->graphs_by_size[std::size_t(s - 1)], by_size[std::size_t(s)]) << s;
  }

  // Functions up to renaming: graphs are linked by equality and by having one key.
  std::map<std::string, std::string> parent;
  const auto find = [&](std::string k) {
    while (parent[k] != k) k = parent[k];
    return k;
  };
  for (const std::string& k : keys) parent[k] = k;
  for (std::size_t c = 0; c < all->class_count(); ++c) {
    for (TermId id : all->members(c)) {
      parent[find(keys[std::size_t(id)])] = find(keys[std::size_t(all->members(c)[0])]);
    }
  }
  std::map<std::string, std::set<std::string>> graphs_of;
  for (std::size_t k = std::size_t(all->table.input_count()); k < keys.size(); ++k) {
    graphs_of[find(keys[k])].insert(keys[k]);
  }
  std::uint64_t pairs = 0;
  for (const auto& [root, graphs] : graphs_of) pairs += graphs.size() * (graphs.size() - 1) / 2;
  EXPECT_EQ(canonical->classes, graphs_of.size());
  EXPECT_EQ(canonical->equivalent_pairs, pairs);

  // Members of canonical classes are equal as they stand, by the exhaustive classes.
  std::map<std::string, std::size_t> class_of;
  for (std::size_t c = 0; c < all->class_count(); ++c) {
    for (TermId id : all->members(c)) class_of[all->table.Print(id)] = c;
  }
  std::size_t own_renamings = 0;
  const std::vector<std::string> canonical_keys = OrbitKeys(*canonical);
  for (std::size_t c = 0; c < canonical->class_count(); ++c) {
    std::set<std::size_t> classes;
    std::set<std::string> orbits;
    for (TermId id : canonical->members(c)) {
      const auto it = class_of.find(canonical->table.Print(id));
      ASSERT_TRUE(it != class_of.end()) << canonical->table.Print(id);
      classes.insert(it->second);
      own_renamings += orbits.insert(canonical_keys[std::size_t(id)]).second ? 0 : 1;
    }
    EXPECT_EQ(classes.size(), 1u) << canonical->table.Print(canonical->members(c)[0]);
  }
  EXPECT_GT(own_renamings, 0u);  // a + (b + c) = b + (a + c), and op(a, b) = op(b, a).
}

TEST(CanonicalTest, MatrixAgreesWithExhaustiveMode) { ExpectConsistent("matrix", 3); }
TEST(CanonicalTest, ConvAgreesWithExhaustiveMode) { ExpectConsistent("conv", 2); }

TEST(CanonicalTest, ShardsAndSeedsChangeNothing) {
  const auto u = convert::LoadUniverse("matrix");
  ASSERT_TRUE(u.ok());
  const auto one = Enumerate(*u, {.mode = Mode::kCanonical});
  ASSERT_TRUE(one.ok());
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const auto e =
        Enumerate(*u, {.mode = Mode::kCanonical, .shards = std::uint32_t(2 * seed), .seed = seed});
    ASSERT_TRUE(e.ok());
    EXPECT_EQ(e->class_members, one->class_members);
    EXPECT_EQ(e->class_at, one->class_at);
    ASSERT_EQ(e->table.size(), one->table.size());
    for (std::size_t k = 0; k < e->table.size(); k += 97) {
      EXPECT_EQ(e->table.Print(static_cast<TermId>(k)), one->table.Print(static_cast<TermId>(k)));
    }
  }
}

TEST(CanonicalTest, TooManyRenamingsAreRefused) {
  std::string text = "name: \"many\" outputs: SINGLE max_operators: 1 operator { name: \"Add\" } ";
  for (char c = 'a'; c < 'g'; ++c) {
    text += std::string("input { name: \"") + c + "\" kind: ACTIVATION shape: [2] } ";
  }
  const auto u = convert::ParseUniverse(text, "many");
  ASSERT_TRUE(u.ok()) << u.status();
  EXPECT_EQ(Enumerate(*u, {.mode = Mode::kCanonical}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Enumerate(*u, {}).ok());
}

}  // namespace
}  // namespace tenon::worker
