// Packs: proved rules with a name, made once and never changed. Bytes only; files, signatures and
// hashes are client/registry's. Format and test vector: docs/formats/pack.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/rules/rule.h"

namespace tenon::pack {

// The version of what operators and rules mean and of what a proof asks. A change of an operator's
// meaning, of shape inference, of what `where` and `both` say or of the prover's laws is a new
// version: packs, verdicts and certificates of another one are refused.
//  1  the first
//  2  square roots of what is not negative, maxima of two, sides that differ by commutation only
inline constexpr std::uint64_t kSemanticsVersion = 2;

struct Counts {
  std::vector<std::uint64_t> graphs_by_size;  // From 1.
  std::uint64_t classes = 0;
  std::uint64_t equivalent_pairs = 0;
  std::uint64_t candidates = 0;
  std::uint64_t proved = 0;
  std::uint64_t refuted = 0;
  std::uint64_t unproved = 0;
  std::uint64_t pairs_checked = 0;  // Each alone: all of them, or a sample.
  std::uint64_t underivable = 0;    // Of those.
  friend bool operator==(const Counts&, const Counts&) = default;
};

struct PackedRule {
  rules::Rule rule;         // Canonical; its name and float class are part of the pack.
  std::string certificate;  // Empty: none.
  // The rule of this pack that this one says again with an axis more or less (a family,
  // core/rules/forms.h), by its name; that rule is no form itself. Empty: the rule stands for
  // itself.
  std::string form_of = {};
  // Made of two programs that agree in part only, by correcting the rest
  // (docs/partial-equivalence.md).
  bool corrected = false;
};

// What has an address. A value type.
struct Content {
  std::uint64_t semantics = kSemanticsVersion;
  std::string universe;  // Canonical text.
  std::string mode = "exhaustive";
  std::uint64_t max_operators = 0;
  Counts counts;
  std::vector<PackedRule> rules;
};

// Rules that stand for themselves: a family counts once, however many forms it has.
std::size_t FamilyCount(const Content& content);

struct Provenance {
  std::string job;
  std::string code_version;
  std::int64_t time = 0;  // Seconds since 1970-01-01 UTC, 0: not recorded.
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

struct Version {
  std::uint32_t major = 0, minor = 0, patch = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};
// "1.2.3". InvalidArgument otherwise.
StatusOr<Version> ParseVersion(std::string_view text);
std::string ToString(const Version& version);
// Whether a pack may be called so: 1 to 64 of a-z 0-9 _ -, a letter first.
bool IsPackName(std::string_view name);

// FailedPrecondition names a rule that has no certificate: such a pack is not published. (Whether
// what is there proves anything is the checker's to say: verifier/cert/check.h.)
Status RequireCertificates(const Content& content);

// The canonical bytes. Rules are put into canonical form and order. InvalidArgument when two rules
// are equal or share a name, a name is no rule name, `form_of` names no rule that stands for
// itself, or a rule has no canonical form.
StatusOr<std::string> EncodeContent(const Content& content);
// Reads foreign bytes. DataLoss says what is wrong; FailedPrecondition: of another semantics
// version.
StatusOr<Content> DecodeContent(std::string_view bytes);

std::string EncodeProvenance(const Provenance& provenance);
StatusOr<Provenance> DecodeProvenance(std::string_view bytes);

// The pack as rule text with comments; rules::ParseRules reads the rules back. `title` stands in
// the first line.
std::string TextView(const Content& content, std::string_view title);

std::string_view NameOf(rules::FloatClass float_class);

}  // namespace tenon::pack
