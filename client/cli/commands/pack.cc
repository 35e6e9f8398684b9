// tenon pack add | list | show | verify | certify | diff | keygen | sign; tenon check-certificates
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>

#include "client/cli/commands/commands.h"
#include "client/cli/commands/packs.h"
#include "client/cli/files.h"
#include "client/registry/cache.h"
#include "client/registry/default_pack.h"
#include "client/registry/file.h"
#include "client/registry/sha256.h"
#include "core/rules/canonical.h"
#include "core/rules/text.h"
#include "optimizer/explain/picture.h"
#include "verifier/cert/check.h"
#include "verifier/certify/certify.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;
using registry::PackFile;

constexpr registry::PackPolicy kAnySigner{.require_signature = false};

StatusOr<registry::PackCache> Cache() {
  ASSIGN_OR_RETURN(std::string folder, registry::PackCache::DefaultDirectory());
  return registry::PackCache(std::move(folder));
}

std::string Signer(const PackFile& pack) {
  return pack.signer ? registry::ToHex(*pack.signer) : "";
}

std::string TimeText(std::int64_t seconds) {
  if (seconds == 0) return "not recorded";
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts));
}

std::string Sides(const rules::Rule& rule) {
  const auto side = [&](const std::vector<graph::NodeId>& roots) {
    std::string text;
    for (const graph::NodeId root : roots) {
      text += (text.empty() ? "" : ", ") + rules::PrintTerm(rule.graph, root);
    }
    return text;
  };
  return fmt::format("{} {} {}", side(rule.source), rule.both ? "<=>" : "=>", side(rule.target));
}

Json RuleJson(const rules::Rule& rule) {
  return Json::Object({{"name", rule.name},
                       {"float_class", pack::NameOf(rule.float_class)},
                       {"both", rule.both},
                       {"text", rules::PrintRule(rule)}});
}

Json PackJson(const PackFile& pack) {
  const pack::Content& content = pack.content;
  return Json::Object({{"name", pack.name},
                       {"version", pack::ToString(pack.version)},
                       {"address", pack.address},
                       {"signer", pack.signer ? Json(Signer(pack)) : Json()},
                       {"rules", pack::FamilyCount(content)},
                       {"forms", content.rules.size()},
                       {"semantics", content.semantics},
                       {"mode", content.mode},
                       {"max_operators", content.max_operators},
                       {"job", pack.provenance.job},
                       {"code_version", pack.provenance.code_version},
                       {"time", pack.provenance.time}});
}

// What the certificates of a pack say.
struct Certificates {
  std::size_t present = 0;
  std::size_t proved = 0;
  std::size_t arguments = 0;
  Json refused = Json::Array();
  std::vector<std::string> reasons;
};

Certificates CheckCertificates(const PackFile& pack, bool need_all) {
  Certificates out;
  for (const pack::PackedRule& packed : pack.content.rules) {
    out.present += packed.certificate.empty() ? 0 : 1;
    if (packed.certificate.empty() && !need_all) continue;
    const StatusOr<cert::Checked> checked =
        packed.certificate.empty()
            ? base::FailedPrecondition(fmt::format("rule {} has no certificate", packed.rule.name))
            : cert::Check(packed.rule, packed.certificate);
    if (checked.ok()) {
      ++out.proved;
      out.arguments += static_cast<std::size_t>(checked->arguments);
      continue;
    }
    out.reasons.push_back(base::Message(checked.status()));
    out.refused.Append(Json::Object({{"rule", packed.rule.name}, {"reason", out.reasons.back()}}));
  }
  return out;
}

// Rules of a pack by what they say.
StatusOr<std::map<std::string, const rules::Rule*>> ByMeaning(const PackFile& pack) {
  std::map<std::string, const rules::Rule*> rules;
  for (const pack::PackedRule& packed : pack.content.rules) {
    ASSIGN_OR_RETURN(std::string bytes, rules::CanonicalBytes(packed.rule));
    rules.emplace(std::move(bytes), &packed.rule);
  }
  return rules;
}

}  // namespace

bool IsPackPath(const std::string& reference) {
  std::error_code error;
  return reference.find('/') != std::string::npos || reference.ends_with(".pack") ||
         fs::exists(reference, error);
}

bool IsDefaultPack(const std::string& reference) {
  return reference == registry::kDefaultPack && !IsPackPath(reference);
}

StatusOr<std::string> FindPack(const std::string& reference) {
  if (IsDefaultPack(reference)) {
    return base::InvalidArgument(
        "the pack 'default' is part of tenon and no file: give the path of one");
  }
  if (IsPackPath(reference)) return reference;
  ASSIGN_OR_RETURN(const registry::PackCache cache, Cache());
  return cache.Find(reference);
}

StatusOr<PackFile> OpenPack(const std::string& reference, const registry::PackPolicy& policy) {
  if (IsDefaultPack(reference)) {
    ASSIGN_OR_RETURN(PackFile pack, registry::DecodePackFile(registry::DefaultPackBytes()));
    RETURN_IF_ERROR(base::Annotate(registry::CheckPolicy(pack, policy), "pack default"));
    return pack;
  }
  ASSIGN_OR_RETURN(const std::string path, FindPack(reference));
  return registry::ReadPackFile(path, policy);
}

Status ParsePackReference(const std::string& text, registry::PackFile& pack) {
  const std::size_t at = text.find('@');
  pack.name = text.substr(0, at);
  if (!pack::IsPackName(pack.name)) {
    return base::InvalidArgument(fmt::format(
        "'{}' cannot name a pack: use a-z, 0-9, _ and -, a letter first; see --name", pack.name));
  }
  const std::string version = at == std::string::npos ? "0.1.0" : text.substr(at + 1);
  StatusOr<pack::Version> parsed = pack::ParseVersion(version);
  if (!parsed.ok()) return base::Annotate(parsed.status(), fmt::format("--name {}", text));
  pack.version = *parsed;
  return OkStatus();
}

StatusOr<registry::PublicKey> ReadPublicKey(const std::string& text_or_path) {
  std::string text = text_or_path;
  if (text.size() != 64 || !registry::FromHex(text)) {
    ASSIGN_OR_RETURN(text, ReadText(text_or_path));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  }
  const std::optional<std::string> key = registry::FromHex(text);
  if (!key || key->size() != 32) {
    return base::InvalidArgument(
        fmt::format("{}: no public key; give 64 hexadecimal digits or the .pub file of `tenon pack "
                    "keygen`",
                    text_or_path));
  }
  return *key;
}

StatusOr<registry::SigningKey> ReadSigningKey(const std::string& path) {
  if (!path.empty()) return registry::LoadKey(path);
  ASSIGN_OR_RETURN(const std::string folder, registry::ConfigDirectory());
  return registry::LoadOrCreateKey(folder);
}

Outcome AddPackCommand(Context& context, const std::vector<std::string>& paths) {
  ASSIGN_OR_RETURN(registry::PackCache cache, Cache());
  for (const std::string& path : paths) {
    RETURN_IF_ERROR(registry::ReadPackFile(path).status());
    ASSIGN_OR_RETURN(const std::string bytes, registry::ReadFile(path, registry::kPackBytesMax));
    StatusOr<PackFile> pack = cache.Put(bytes);
    if (!pack.ok()) return base::Annotate(pack.status(), path);
    context.console.Print(fmt::format("{} is in the cache, with {} rules", pack->reference(),
                                      pack::FamilyCount(pack->content)));
  }
  return ExitCode::kDone;
}

Outcome ListPacksCommand(Context& context, const std::string& json) {
  RETURN_IF_ERROR(CheckDeliverable(json));
  ASSIGN_OR_RETURN(const registry::PackCache cache, Cache());
  ASSIGN_OR_RETURN(const std::vector<registry::PackCache::Entry> entries, cache.List());
  Json document = Json::Array();
  for (const registry::PackCache::Entry& entry : entries) {
    const std::string reference = fmt::format("{}@{}", entry.name, pack::ToString(entry.version));
    StatusOr<PackFile> pack = registry::ReadPackFile(entry.path, kAnySigner);
    if (pack.ok()) {
      context.console.Print(fmt::format("{:<24} {:>5} rules  {}", reference,
                                        pack::FamilyCount(pack->content),
                                        context.console.Paint(Color::kDim, entry.path)));
      Json fields = PackJson(*pack);
      fields.Set("path", entry.path);
      document.Append(std::move(fields));
    } else {
      context.console.Warn(base::Message(pack.status()));
    }
  }
  if (entries.empty()) {
    context.console.Print("no packs in the cache; `tenon pack add FILE` puts one there");
  }
  RETURN_IF_ERROR(Deliver(document, json, context.console));
  return ExitCode::kDone;
}

Outcome ShowPackCommand(Context& context, const PackShowOptions& options) {
  for (const std::string& path : {options.svg, options.dot}) {
    if (!path.empty()) RETURN_IF_ERROR(CheckWritable(path));
  }
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(PackFile pack, OpenPack(options.pack, kAnySigner));
  if (options.rule.empty()) {
    if (!options.svg.empty() || !options.dot.empty()) {
      return base::InvalidArgument(
          "--svg and --dot draw one rule; name it with --rule (the names are those of `tenon pack "
          "show`)");
    }
    Json rules = Json::Array();
    for (const pack::PackedRule& packed : pack.content.rules) {
      Json fields = RuleJson(packed.rule);
      fields.Set("form_of", packed.form_of.empty() ? Json() : Json(packed.form_of));
      fields.Set("corrected", packed.corrected);
      rules.Append(std::move(fields));
    }
    std::string text = pack::TextView(pack.content, pack.reference());
    while (text.ends_with('\n')) text.pop_back();
    context.console.Print(text);
    Json document = PackJson(pack);
    document.Set("universe", pack.content.universe);
    document.Set("rules", std::move(rules));
    RETURN_IF_ERROR(Deliver(document, options.json, context.console));
    return ExitCode::kDone;
  }
  const auto found = std::find_if(
      pack.content.rules.begin(), pack.content.rules.end(),
      [&](const pack::PackedRule& packed) { return packed.rule.name == options.rule; });
  if (found == pack.content.rules.end()) {
    return base::NotFound(fmt::format("{} has no rule '{}'; `tenon pack show {}` lists them",
                                      options.pack, options.rule, options.pack));
  }
  const std::vector<optimizer::Picture> pictures = optimizer::PicturesOf(found->rule);
  if (!options.svg.empty()) {
    RETURN_IF_ERROR(WriteText(
        options.svg, optimizer::ToSvg(pictures, {.title = found->rule.name,
                                                 .arrow = found->rule.both ? "<=>" : "=>"})));
  }
  if (!options.dot.empty()) {
    RETURN_IF_ERROR(WriteText(options.dot, optimizer::ToDot(pictures)));
  }
  std::string text = rules::PrintRule(found->rule);
  while (text.ends_with('\n')) text.pop_back();
  context.console.Print(text);
  RETURN_IF_ERROR(Deliver(RuleJson(found->rule), options.json, context.console));
  return ExitCode::kDone;
}

Outcome CheckCertificatesCommand(Context& context, const CheckCertificatesOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  Json document = Json::Array();
  bool all = true;
  for (const std::string& reference : options.packs) {
    ASSIGN_OR_RETURN(const PackFile pack, OpenPack(reference, kAnySigner));
    Certificates found = CheckCertificates(pack, true);
    for (const std::string& why : found.reasons) context.console.Print(why);
    context.console.Print(fmt::format("{}: {}: {} of {} rules are proved by their certificates",
                                      reference, pack.reference(), found.proved,
                                      pack.content.rules.size()));
    all = all && found.reasons.empty();
    document.Append(Json::Object({{"name", pack.name},
                                  {"version", pack::ToString(pack.version)},
                                  {"address", pack.address},
                                  {"rules", pack.content.rules.size()},
                                  {"proved", found.proved},
                                  {"arguments", found.arguments},
                                  {"refused", std::move(found.refused)}}));
  }
  RETURN_IF_ERROR(Deliver(document, options.json, context.console));
  return all ? ExitCode::kDone : ExitCode::kNo;
}

Outcome CertifyPackCommand(Context& context, const PackCertifyOptions& options) {
  const std::string out = options.out.empty() ? options.pack : options.out;
  RETURN_IF_ERROR(CheckWritable(out));
  ASSIGN_OR_RETURN(PackFile pack, registry::ReadPackFile(options.pack, kAnySigner));
  ASSIGN_OR_RETURN(const registry::SigningKey key, ReadSigningKey(options.key));
  std::size_t done = 0, bytes = 0;
  for (pack::PackedRule& packed : pack.content.rules) {
    ASSIGN_OR_RETURN(packed.certificate, certify::Certify(packed.rule));
    bytes += packed.certificate.size();
    context.console.Progress("certificates", ++done, pack.content.rules.size());
    if (context.interrupt.requested()) return absl::CancelledError("certifying was stopped");
  }
  context.console.EndProgress();
  RETURN_IF_ERROR(registry::WritePackFile(out, pack, &key));
  context.console.Print(fmt::format("{}: {} rules of {} are certified, in {} bytes", out, done,
                                    pack.reference(), bytes));
  return ExitCode::kDone;
}

Outcome VerifyPackCommand(Context& context, const PackVerifyOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  registry::PackPolicy policy;
  if (!options.key.empty()) {
    ASSIGN_OR_RETURN(policy.signer, ReadPublicKey(options.key));
  }
  Json document = Json::Array();
  for (const std::string& reference : options.packs) {
    ASSIGN_OR_RETURN(const PackFile pack, OpenPack(reference, policy));
    const Certificates certificates = CheckCertificates(pack, false);
    if (!certificates.reasons.empty()) {
      return base::DataLoss(fmt::format("{}: {}", reference, certificates.reasons.front()));
    }
    context.console.Print(fmt::format("{}: {} {}, {} rules", reference, pack.reference(),
                                      context.console.Paint(Color::kGreen, "is intact"),
                                      pack::FamilyCount(pack.content)));
    context.console.Print(fmt::format("  content  {}", pack.address));
    context.console.Print(fmt::format("  signer   {}", Signer(pack)));
    context.console.Print(fmt::format("  made by  {} {}, {}", pack.provenance.job,
                                      pack.provenance.code_version,
                                      TimeText(pack.provenance.time)));
    context.console.Print(fmt::format("  proofs   {} certificates are right, {} rules have none",
                                      certificates.proved,
                                      pack.content.rules.size() - certificates.present));
    Json fields = PackJson(pack);
    fields.Set("certificates", certificates.proved);
    document.Append(std::move(fields));
  }
  RETURN_IF_ERROR(Deliver(document, options.json, context.console));
  return ExitCode::kDone;
}

Outcome DiffPacksCommand(Context& context, const PackDiffOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(const PackFile a, OpenPack(options.a, kAnySigner));
  ASSIGN_OR_RETURN(const PackFile b, OpenPack(options.b, kAnySigner));
  ASSIGN_OR_RETURN(const auto rules_a, ByMeaning(a));
  ASSIGN_OR_RETURN(const auto rules_b, ByMeaning(b));
  Json removed = Json::Array(), added = Json::Array();
  for (const auto& [bytes, rule] : rules_a) {
    if (rules_b.contains(bytes)) continue;
    context.console.Print(
        context.console.Paint(Color::kRed, fmt::format("- {}: {}", rule->name, Sides(*rule))));
    removed.Append(RuleJson(*rule));
  }
  for (const auto& [bytes, rule] : rules_b) {
    if (rules_a.contains(bytes)) continue;
    context.console.Print(
        context.console.Paint(Color::kGreen, fmt::format("+ {}: {}", rule->name, Sides(*rule))));
    added.Append(RuleJson(*rule));
  }
  const bool same_content = a.address == b.address;
  const bool same_rest =
      a.reference() == b.reference() && a.provenance == b.provenance && a.signer == b.signer;
  const bool equal = same_content && (options.content || same_rest);
  if (equal) {
    context.console.Print(options.content ? "equal in content" : "equal");
  } else if (same_content) {
    context.console.Print("equal in content; name, version, provenance or signer differ");
  } else {
    context.console.Print(fmt::format("content differs: {} and {}", a.address, b.address));
  }
  RETURN_IF_ERROR(Deliver(Json::Object({{"equal", equal},
                                        {"same_content", same_content},
                                        {"removed", std::move(removed)},
                                        {"added", std::move(added)}}),
                          options.json, context.console));
  return equal ? ExitCode::kDone : ExitCode::kNo;
}

Outcome GenerateKeyCommand(Context& context, const PackKeygenOptions& options) {
  const std::string public_path = options.out + ".pub";
  RETURN_IF_ERROR(CheckWritable(options.out));
  RETURN_IF_ERROR(CheckWritable(public_path));
  RETURN_IF_ERROR(registry::CreateKey(options.out));
  ASSIGN_OR_RETURN(const registry::SigningKey key, registry::LoadKey(options.out));
  const std::string text = registry::ToHex(key.public_key());
  RETURN_IF_ERROR(WriteText(public_path, text + "\n"));
  context.console.Print(fmt::format("{}: the secret key, keep it to yourself", options.out));
  context.console.Print(fmt::format("{}: the public key {}", public_path, text));
  return ExitCode::kDone;
}

Outcome SignPackCommand(Context& context, const PackSignOptions& options) {
  const std::string out = options.out.empty() ? options.pack : options.out;
  RETURN_IF_ERROR(CheckWritable(out));
  ASSIGN_OR_RETURN(const PackFile pack, registry::ReadPackFile(options.pack, kAnySigner));
  ASSIGN_OR_RETURN(const registry::SigningKey key, ReadSigningKey(options.key));
  RETURN_IF_ERROR(registry::WritePackFile(out, pack, &key));
  context.console.Print(fmt::format("{}: {} is signed by {}", out, pack.reference(),
                                    registry::ToHex(key.public_key())));
  return ExitCode::kDone;
}

}  // namespace tenon::cli
