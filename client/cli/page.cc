#include "client/cli/page.h"

#include <ctime>

#include <fmt/format.h>

#include "client/cli/console.h"
#include "client/registry/sha256.h"
#include "core/rules/text.h"
#include "optimizer/explain/picture.h"

namespace tenon::cli {
namespace {

// Pages with more pictures than this are no use to anybody.
constexpr std::size_t kPicturesMax = 300;

constexpr std::string_view kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;"
    "color:#1c2733;background:#fff}"
    "h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}"
    "table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #dde3ea;"
    "vertical-align:top}th{font-weight:600;color:#51606f}"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "code,pre{font:13px/1.4 ui-monospace,monospace}pre{overflow:auto}"
    ".done{color:#13795b}.failed{color:#b3261e}.muted{color:#6b7a89}"
    "progress{width:9rem}svg{max-width:100%;height:auto}a{color:#0b5cad}";

std::string Page(std::string_view title, std::string_view body, bool refresh) {
  return fmt::format(
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\">{}<title>{}</title>"
      "<style>{}</style></head><body><h1>{}</h1>{}</body></html>\n",
      refresh ? "<meta http-equiv=\"refresh\" content=\"3\">" : "", Escaped(title), kStyle,
      Escaped(title), body);
}

std::string Time(convert::UnixTime time) {
  const std::time_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  if (seconds == 0) return "";
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts));
}

std::string State(const convert::Job& job) {
  return fmt::format("<span class=\"{0}\">{0}</span>{1}", convert::NameOf(job.state),
                     job.paused ? " (paused)" : "");
}

std::string Done(const convert::Job& job) {
  std::uint64_t done = job.shards_done, total = job.shards_total;
  const char* what = "shards";
  if (job.state == convert::JobState::kReducing) {
    done = job.proofs_done;
    total = job.proofs_total;
    what = "proofs";
  }
  if (total == 0) return "";
  return fmt::format("<progress value=\"{0}\" max=\"{1}\"></progress> {0} of {1} {2}", done, total,
                     what);
}

std::string PackLink(const std::string& reference) {
  return fmt::format("<a href=\"/packs/{0}\">{0}</a>", Escaped(reference));
}

std::string JobRows(std::span<const convert::Job> jobs) {
  std::string rows;
  for (const convert::Job& job : jobs) {
    rows += fmt::format(
        "<tr><td><a href=\"/jobs/{0}\">{0}</a></td><td>{1}</td><td>{2}</td><td>{3}</td>"
        "<td class=\"n\">{4}</td><td class=\"n\">{5}</td></tr>",
        Escaped(job.id), State(job),
        Escaped(fmt::format("{}@{}", job.spec.pack_name, job.spec.pack_version)), Done(job),
        Grouped(job.counts.graphs), Grouped(job.counts.rules));
  }
  return rows;
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string OverviewPage(std::span<const convert::Job> jobs, std::span<const PageNode> nodes,
                         std::span<const PagePack> packs) {
  std::string body = "<h2>Jobs</h2>";
  body += jobs.empty() ? "<p class=\"muted\">No jobs yet: <code>tenon job submit</code></p>"
                       : "<table><tr><th>Job</th><th>State</th><th>Pack</th><th></th>"
                         "<th>Graphs</th><th>Rules</th></tr>" +
                             JobRows(jobs) + "</table>";
  body +=
      "<h2>Nodes</h2><table><tr><th>Node</th><th>Role</th><th>Address</th><th>Leases</th>"
      "<th>Seen</th></tr>";
  for (const PageNode& node : nodes) {
    body += fmt::format(
        "<tr><td>{}</td><td>{}{}</td><td>{}</td><td class=\"n\">{}</td><td>{:.0f} s ago</td></tr>",
        Escaped(node.id), Escaped(node.role), node.draining ? " (leaving)" : "",
        Escaped(node.address), node.leases, node.seen_seconds_ago);
  }
  body +=
      "</table><h2>Packs</h2><table><tr><th>Pack</th><th>Rules</th><th>Channels</th>"
      "<th>Content</th><th>Signer</th></tr>";
  for (const PagePack& pack : packs) {
    body += fmt::format(
        "<tr><td>{}</td><td class=\"n\">{}</td><td>{}</td><td><code>{}</code></td>"
        "<td><code>{}</code></td></tr>",
        PackLink(pack.reference), pack.rules,
        Escaped(fmt::format("{}", fmt::join(pack.channels, " "))),
        Escaped(pack.address.substr(0, 12)), Escaped(pack.signer.substr(0, 12)));
  }
  return Page("Tenon", body + "</table>", true);
}

std::string JobPage(const convert::Job& job) {
  std::string body = "<p><a href=\"/\">All jobs</a></p><table>";
  const auto row = [&](std::string_view name, const std::string& html) {
    if (!html.empty()) body += fmt::format("<tr><th>{}</th><td>{}</td></tr>", name, html);
  };
  row("State", State(job));
  row("Pack", job.state == convert::JobState::kDone
                  ? PackLink(job.pack_reference)
                  : Escaped(fmt::format("{}@{}", job.spec.pack_name, job.spec.pack_version)));
  row("Progress", Done(job));
  row("Shards", fmt::format("{} of {} done, {} leased", job.shards_done, job.shards_total,
                            job.shards_leased));
  row("Round", job.round > 0 ? fmt::format("{}: {} of {} proofs", job.round, job.proofs_done,
                                           job.proofs_total)
                             : "");
  row("Graphs", Grouped(job.counts.graphs));
  row("Classes", Grouped(job.counts.classes));
  row("Equivalent pairs", Grouped(job.counts.equivalent_pairs));
  row("Candidates", Grouped(job.counts.candidates));
  row("Proved", Grouped(job.counts.proved));
  row("Refuted", Grouped(job.counts.refuted));
  row("Unproved", Grouped(job.counts.unproved));
  row("Rules", Grouped(job.counts.rules));
  row("CPU time", Duration(double(job.cpu.count()) / 1000));
  row("Submitted", Time(job.submitted_at));
  row("Started", Time(job.started_at));
  row("Ended", Time(job.ended_at));
  row("Error", Escaped(job.error));
  for (const convert::SetAside& s : job.set_aside) {
    row("Set aside", fmt::format("shard {}: {}", s.shard, Escaped(s.last_error)));
  }
  body += "</table><h2>Universe</h2><pre>" + Escaped(job.spec.universe) + "</pre>";
  return Page("Job " + job.id, body, !convert::HasEnded(job.state));
}

std::string PackPage(const registry::PackFile& pack) {
  std::string body = fmt::format(
      "<p><a href=\"/\">All packs</a></p><p>{} rules, all proved. Content <code>{}</code>, signed "
      "by <code>{}</code></p>",
      pack.content.rules.size(), pack.address,
      pack.signer ? registry::ToHex(*pack.signer) : "nobody");
  std::size_t pictures = 0;
  for (const pack::PackedRule& packed : pack.content.rules) {
    const rules::Rule& rule = packed.rule;
    body += fmt::format("<h2 id=\"{0}\">{0}</h2><pre>{1}</pre>", Escaped(rule.name),
                        Escaped(rules::PrintRule(rule)));
    if (++pictures > kPicturesMax) continue;
    const std::string svg =
        optimizer::ToSvg(optimizer::PicturesOf(rule), {.arrow = rule.both ? "<=>" : "=>"});
    body += svg.substr(std::min(svg.find("<svg"), svg.size()));
  }
  return Page("Pack " + pack.reference(), body, false);
}

}  // namespace tenon::cli
