// tenon-check: checks the certificates of rule packs. It links no solver, no gRPC and no database:
// what has to be trusted is the code in front of you.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "client/registry/pack_file.h"
#include "trusted_lines.h"  // Generated.
#include "verifier/cert/check.h"

namespace tenon {
namespace {

constexpr std::string_view kUsage =
    "usage: tenon-check [--json] [--timing] PACK...\n"
    "       tenon-check --trusted\n"
    "\n"
    "Checks that every rule of the packs carries a certificate that proves it for all sizes.\n"
    "Signatures are not asked for: a proof is right whoever made it (`tenon pack verify` asks).\n"
    "  --json     one line of JSON for each pack instead of text\n"
    "  --timing   how long each rule takes, in milliseconds of the processor\n"
    "  --trusted  which source files a checked certificate relies on, with their lines\n"
    "\n"
    "Exit codes: 0 all are proved; 1 a rule is not; 2 wrong usage; 3 a file cannot be read.\n";

constexpr int kDone = 0, kNo = 1, kUsageError = 2, kBadInput = 3;

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

double CpuMs() { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Options {
  bool json = false, timing = false;
};

int CheckPack(const std::string& path, const Options& options) {
  const bool json = options.json;
  const auto pack = registry::ReadPackFile(path, {.require_signature = false});
  if (!pack.ok()) {
    fmt::print(stderr, "tenon-check: {}\n", base::Message(pack.status()));
    return kBadInput;
  }
  const double start = CpuMs();
  std::vector<double> times;
  std::string refused;
  std::size_t bad = 0, arguments = 0;
  for (const pack::PackedRule& packed : pack->content.rules) {
    const double begin = CpuMs();
    const auto checked = cert::Check(packed.rule, packed.certificate);
    times.push_back(CpuMs() - begin);
    if (options.timing && !json) fmt::print("{:9.3f} ms  {}\n", times.back(), packed.rule.name);
    if (checked.ok()) {
      arguments += static_cast<std::size_t>(checked->arguments);
      continue;
    }
    ++bad;
    const std::string why = base::Message(checked.status());
    if (json) {
      refused += fmt::format("{}{{\"rule\": {}, \"reason\": {}}}", refused.empty() ? "" : ", ",
                             Quoted(packed.rule.name), Quoted(why));
    } else {
      fmt::print("{}: {}\n", path, why);
    }
  }
  const std::size_t rules = pack->content.rules.size();
  const double ms = CpuMs() - start;
  std::sort(times.begin(), times.end());
  const double median = times.empty() ? 0 : times[times.size() / 2];
  const double most = times.empty() ? 0 : times.back();
  if (json) {
    fmt::print(
        "{{\"pack\": {}, \"address\": {}, \"rules\": {}, \"proved\": {}, \"arguments\": {}, "
        "\"milliseconds\": {:.3f}, \"median_milliseconds\": {:.3f}, "
        "\"most_milliseconds\": {:.3f}, \"refused\": [{}]}}\n",
        Quoted(pack->reference()), Quoted(pack->address), rules, rules - bad, arguments, ms, median,
        most, refused);
  } else {
    fmt::print(
        "{}: {}: {} of {} rules are proved by their certificates ({} arguments, {:.1f} ms: {:.3f} "
        "a rule at "
        "the median, {:.3f} at most)\n",
        path, pack->reference(), rules - bad, rules, arguments, ms, median, most);
  }
  return bad == 0 ? kDone : kNo;
}

int PrintTrusted() {
  int total = 0;
  for (const check::TrustedPart& part : check::kTrusted) {
    fmt::print("{:>6} lines  {:<16} {}\n", part.lines, part.path, part.what);
    total += part.lines;
  }
  fmt::print(
      "{:>6} lines  in all; besides them the compiler, the standard library, abseil and fmt\n",
      total);
  return kDone;
}

int Main(const std::vector<std::string>& arguments) {
  Options options;
  std::vector<std::string> packs;
  for (const std::string& a : arguments) {
    if (a == "--help" || a == "-h") {
      fmt::print("{}", kUsage);
      return kDone;
    }
    if (a == "--trusted") return PrintTrusted();
    if (a == "--json") {
      options.json = true;
    } else if (a == "--timing") {
      options.timing = true;
    } else if (a.starts_with("-")) {
      fmt::print(stderr, "tenon-check: there is no option '{}'; see tenon-check --help\n", a);
      return kUsageError;
    } else {
      packs.push_back(a);
    }
  }
  if (packs.empty()) {
    fmt::print(stderr, "{}", kUsage);
    return kUsageError;
  }
  int worst = kDone;
  for (const std::string& path : packs) worst = std::max(worst, CheckPack(path, options));
  return worst;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) { return tenon::Main({argv + 1, argv + argc}); }
