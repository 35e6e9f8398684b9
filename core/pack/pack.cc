#include "core/pack/pack.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/core.h>

#include "core/base/bytes.h"
#include "core/rules/canonical.h"
#include "core/rules/text.h"

namespace tenon::pack {
namespace {

using base::ByteReader;
using base::PutByte;
using base::PutString;
using base::PutVarint;

constexpr std::uint8_t kFormat = 2;
constexpr std::uint8_t kProvenanceFormat = 1;
constexpr std::uint64_t kSizesMax = 64;

bool IsRuleName(std::string_view name) {
  if (name.empty() || name.size() > 200) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_.:/-").find(c) != std::string_view::npos;
  });
}

// Short rules first.
bool Before(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

Status Damaged(const ByteReader& in) {
  return base::DataLoss(fmt::format("byte {}: {}", in.offset(), in.error()));
}

// A rule whose `form_of` names no rule that stands for itself.
const PackedRule* FormOfNothing(const Content& content) {
  std::set<std::string_view> bases;
  for (const PackedRule& r : content.rules) {
    if (r.form_of.empty()) bases.insert(r.rule.name);
  }
  for (const PackedRule& r : content.rules) {
    if (!r.form_of.empty() && !bases.contains(r.form_of)) return &r;
  }
  return nullptr;
}

}  // namespace

std::size_t FamilyCount(const Content& content) {
  return static_cast<std::size_t>(
      std::count_if(content.rules.begin(), content.rules.end(),
                    [](const PackedRule& r) { return r.form_of.empty(); }));
}

StatusOr<Version> ParseVersion(std::string_view text) {
  Version v;
  std::uint32_t* const parts[] = {&v.major, &v.minor, &v.patch};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int k = 0; k < 3; ++k) {
    const auto [next, error] = std::from_chars(at, end, *parts[k]);
    const bool leading_zero = next - at > 1 && *at == '0';
    const bool separated = k == 2 ? next == end : next != end && *next == '.';
    if (error != std::errc() || leading_zero || !separated) {
      return base::InvalidArgument(
          fmt::format("'{}' is no version; write MAJOR.MINOR.PATCH, as in 1.0.0", text));
    }
    at = next + 1;
  }
  return v;
}

std::string ToString(const Version& v) {
  return fmt::format("{}.{}.{}", v.major, v.minor, v.patch);
}

bool IsPackName(std::string_view name) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= 64 && lower(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
         });
}

Status RequireCertificates(const Content& content) {
  for (const PackedRule& packed : content.rules) {
    if (!packed.certificate.empty()) continue;
    return base::FailedPrecondition(fmt::format(
        "rule {} has no certificate; `tenon pack certify` makes one", packed.rule.name));
  }
  return OkStatus();
}

StatusOr<std::string> EncodeContent(const Content& content) {
  struct Entry {
    std::string bytes;
    const PackedRule* rule;
  };
  std::vector<Entry> entries;
  std::set<std::string> names;
  for (const PackedRule& r : content.rules) {
    auto bytes = rules::CanonicalBytes(r.rule);
    if (!bytes.ok()) return base::Annotate(bytes.status(), "rule " + r.rule.name);
    if (!IsRuleName(r.rule.name) || !names.insert(r.rule.name).second) {
      return base::InvalidArgument(
          fmt::format("'{}' is no rule name or names two rules of the pack", r.rule.name));
    }
    entries.push_back({*std::move(bytes), &r});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return Before(a.bytes, b.bytes); });
  for (std::size_t k = 1; k < entries.size(); ++k) {
    if (entries[k - 1].bytes == entries[k].bytes) {
      return base::InvalidArgument(fmt::format("rules {} and {} are the same",
                                               entries[k - 1].rule->rule.name,
                                               entries[k].rule->rule.name));
    }
  }
  if (const PackedRule* lost = FormOfNothing(content)) {
    return base::InvalidArgument(
        fmt::format("rule {} is called a form of {}, which is no rule that stands for itself",
                    lost->rule.name, lost->form_of));
  }
  std::string out;
  PutByte(out, kFormat);
  PutVarint(out, content.semantics);
  PutString(out, content.universe);
  PutString(out, content.mode);
  PutVarint(out, content.max_operators);
  const Counts& c = content.counts;
  PutVarint(out, c.graphs_by_size.size());
  for (std::uint64_t n : c.graphs_by_size) PutVarint(out, n);
  for (std::uint64_t n : {c.classes, c.equivalent_pairs, c.candidates, c.proved, c.refuted,
                          c.unproved, c.pairs_checked, c.underivable}) {
    PutVarint(out, n);
  }
  PutVarint(out, entries.size());
  for (const Entry& e : entries) {
    PutString(out, e.bytes);
    PutString(out, e.rule->rule.name);
    PutByte(out, static_cast<std::uint8_t>(e.rule->rule.float_class));
    PutString(out, e.rule->certificate);
    PutString(out, e.rule->form_of);
  }
  std::vector<std::uint64_t> corrected;
  for (std::size_t k = 0; k < entries.size(); ++k) {
    if (entries[k].rule->corrected) corrected.push_back(k);
  }
  if (corrected.empty()) return out;
  PutVarint(out, corrected.size());
  for (const std::uint64_t k : corrected) PutVarint(out, k);
  return out;
}

// The marks at the end, which a content without corrected rules does not have.
void ReadCorrected(ByteReader& in, Content& content) {
  if (!in.ok() || in.remaining() == 0) return;
  const std::uint64_t count = in.Count(content.rules.size(), "more rules are corrected than there");
  if (in.ok() && count == 0) in.Fail("an empty list of corrected rules is left out");
  std::uint64_t from = 0;
  for (std::uint64_t k = 0; k < count && in.ok(); ++k) {
    const std::uint64_t number = in.Varint();
    if (in.ok() && (number < from || number >= content.rules.size())) {
      in.Fail("the numbers of corrected rules are not ascending or too large");
    }
    if (!in.ok()) return;
    content.rules[number].corrected = true;
    from = number + 1;
  }
}

StatusOr<Content> DecodeContent(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.Byte() != kFormat) in.Fail("the format of the content is not 2; it needs another tenon");
  Content content;
  content.semantics = in.Varint();
  if (!in.ok()) return Damaged(in);
  if (content.semantics != kSemanticsVersion) {
    return base::FailedPrecondition(
        fmt::format("its rules were proved for semantics version {}, this tenon has {}; generate "
                    "the pack anew",
                    content.semantics, kSemanticsVersion));
  }
  content.universe = std::string(in.String());
  content.mode = std::string(in.String());
  if (content.mode != "exhaustive" && content.mode != "canonical") in.Fail("there is no such mode");
  content.max_operators = in.Varint();
  Counts& c = content.counts;
  const std::uint64_t sizes = in.Count(kSizesMax, "there are too many sizes");
  for (std::uint64_t k = 0; k < sizes && in.ok(); ++k) c.graphs_by_size.push_back(in.Varint());
  for (std::uint64_t* n : {&c.classes, &c.equivalent_pairs, &c.candidates, &c.proved, &c.refuted,
                           &c.unproved, &c.pairs_checked, &c.underivable}) {
    *n = in.Varint();
  }
  const std::uint64_t count = in.Count(in.remaining(), "there are more rules than bytes");
  std::string last;
  std::set<std::string, std::less<>> names;
  for (std::uint64_t k = 0; k < count && in.ok(); ++k) {
    const std::string rule_bytes(in.String());
    const std::string name(in.String());
    const std::uint8_t float_class = in.Byte();
    PackedRule packed{{}, std::string(in.String()), std::string(in.String())};
    if (in.ok() && k > 0 && !Before(last, rule_bytes)) in.Fail("the rules are not in order");
    if (in.ok() && (!IsRuleName(name) || !names.insert(name).second)) {
      in.Fail("a name of a rule is malformed or used twice");
    }
    if (in.ok() && (float_class < 1 || float_class > 3)) in.Fail("there is no such float class");
    if (!in.ok()) break;
    auto rule = rules::DecodeRule(rule_bytes);
    if (!rule.ok()) return base::Annotate(rule.status(), fmt::format("rule {}", name));
    packed.rule = *std::move(rule);
    packed.rule.name = name;
    packed.rule.float_class = static_cast<rules::FloatClass>(float_class);
    content.rules.push_back(std::move(packed));
    last = rule_bytes;
  }
  if (in.ok() && FormOfNothing(content)) in.Fail("a rule is a form of none that stands for itself");
  ReadCorrected(in, content);
  in.End();
  if (!in.ok()) return Damaged(in);
  return content;
}

std::string EncodeProvenance(const Provenance& p) {
  std::string out;
  PutByte(out, kProvenanceFormat);
  PutString(out, p.job);
  PutString(out, p.code_version);
  PutVarint(out, static_cast<std::uint64_t>(std::max<std::int64_t>(p.time, 0)));
  return out;
}

StatusOr<Provenance> DecodeProvenance(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.Byte() != kProvenanceFormat) in.Fail("the format of the provenance is not 1");
  Provenance p;
  p.job = std::string(in.String());
  p.code_version = std::string(in.String());
  p.time = static_cast<std::int64_t>(in.Count(std::uint64_t{1} << 62, "a time is out of range"));
  in.End();
  if (!in.ok()) return Damaged(in);
  return p;
}

std::string_view NameOf(rules::FloatClass float_class) {
  switch (float_class) {
    case rules::FloatClass::kExact:
      return "exact";
    case rules::FloatClass::kFinite:
      return "finite";
    case rules::FloatClass::kDomain:
      return "domain";
  }
  return "domain";
}

std::string TextView(const Content& content, std::string_view title) {
  std::uint64_t graphs = 0;
  for (std::uint64_t n : content.counts.graphs_by_size) graphs += n;
  const Counts& c = content.counts;
  std::string out = fmt::format(
      "# {}\n# {} rules in {} forms, all proved for all shapes (semantics version {}).\n"
      "# Found among {} graphs of up to {} operators ({}): {} classes, {} equal pairs,\n"
      "# {} candidates: {} proved, {} refuted, {} unproved; of {} pairs checked not derivable: "
      "{}.\n",
      title, FamilyCount(content), content.rules.size(), content.semantics, graphs,
      content.max_operators, content.mode, c.classes, c.equivalent_pairs, c.candidates, c.proved,
      c.refuted, c.unproved, c.pairs_checked, c.underivable);
  const auto print = [&](const PackedRule& r, const std::string& note) {
    rules::Rule rule = r.rule;
    rule.expect = rules::Expect::kProved;  // So that `tenon prove` can check the view.
    out += fmt::format("\n# {}{}{}\n{}", NameOf(rule.float_class), note,
                       r.corrected ? ", corrected" : "", rules::PrintRule(rule));
  };
  for (const PackedRule& r : content.rules) {
    if (!r.form_of.empty()) continue;
    print(r, "");
    for (const PackedRule& form : content.rules) {
      if (form.form_of == r.rule.name) print(form, ", a form of " + r.rule.name);
    }
  }
  return out;
}

}  // namespace tenon::pack
