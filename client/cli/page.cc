#include "client/cli/page.h"

#include <algorithm>
#include <ctime>
#include <string_view>

#include <fmt/format.h>

#include "client/cli/console.h"
#include "client/registry/sha256.h"
#include "core/base/xml.h"
#include "core/pack/pack.h"
#include "core/rules/text.h"
#include "optimizer/explain/picture.h"

namespace tenon::cli {
namespace {

using base::EscapedXml;
using convert::Job;
using convert::JobState;

// Pages with more pictures than this are no use to anybody.
constexpr std::size_t kPicturesMax = 300;

constexpr std::string_view kStyle =
    ":root{--ink:#1c2733;--soft:#5d6b7a;--line:#dde3ea;--card:#f6f8fa;--blue:#0b5cad;"
    "--green:#13795b;--red:#b3261e;--amber:#8a5a00}"
    "*{box-sizing:border-box}"
    "body{font:15px/1.45 system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;margin:0;"
    "color:var(--ink);background:#fff}"
    "header{background:#13293d;color:#fff;padding:.7rem 1rem}header a{color:#fff;font-weight:600}"
    "header .when{float:right;color:#b7c5d3;font-size:.85rem}"
    "main{max-width:76rem;margin:0 auto;padding:0 1rem 3rem}"
    "h1{font-size:1.35rem;margin:1.2rem 0 .6rem;overflow-wrap:anywhere}"
    "h2{font-size:1.05rem;margin:2rem 0 .5rem}h3{font-size:.95rem;margin:0}"
    "a{color:var(--blue);text-decoration:none}a:hover{text-decoration:underline}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;padding:.4rem .9rem .4rem 0;border-bottom:1px solid var(--line);"
    "vertical-align:top;white-space:nowrap}"
    "th{font-weight:600;color:var(--soft);font-size:.85rem}"
    "td.num,th.num{text-align:right;font-variant-numeric:tabular-nums;padding-right:1.6rem}"
    "td.wrap{white-space:normal;overflow-wrap:anywhere;min-width:12rem}"
    "code,pre{font:13px/1.45 ui-monospace,Menlo,Consolas,monospace}"
    "code,h3,.index{overflow-wrap:anywhere}"
    "pre{overflow-x:auto;background:var(--card);padding:.7rem;border-radius:6px;margin:.5rem 0}"
    ".muted{color:var(--soft)}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.7rem;"
    "margin:1rem 0}"
    ".tile{background:var(--card);border-radius:8px;padding:.6rem .8rem}"
    ".tile b{display:block;font-size:1.35rem;font-variant-numeric:tabular-nums}"
    ".tile span{color:var(--soft);font-size:.85rem}"
    ".badge{display:inline-block;border-radius:99px;padding:0 .6rem;font-size:.8rem;"
    "background:#e8eef5;color:#24435f}"
    ".badge.done{background:#dff3ea;color:var(--green)}"
    ".badge.failed,.badge.silent{background:#fbe4e2;color:var(--red)}"
    ".badge.cancelled,.badge.paused,.badge.leaving{background:#f8ecd2;color:var(--amber)}"
    ".bar{display:inline-block;width:9rem;max-width:40vw;height:.55rem;border-radius:99px;"
    "background:#e3e9ef;overflow:hidden;vertical-align:middle}"
    ".bar i{display:block;height:100%;background:var(--blue)}"
    ".bar.wide{width:100%;max-width:none}"
    ".bars{display:grid;grid-template-columns:max-content 1fr max-content;gap:.3rem .8rem;"
    "align-items:center;max-width:44rem}"
    ".bars .bar{width:100%;max-width:none;height:.8rem;border-radius:3px}"
    ".bars .green i{background:var(--green)}.bars .red i{background:var(--red)}"
    ".bars .amber i{background:#c98a1b}.bars em{font-style:normal;text-align:right;"
    "font-variant-numeric:tabular-nums}"
    "ol.steps{display:flex;flex-wrap:wrap;gap:.4rem;list-style:none;padding:0;margin:.8rem 0}"
    "ol.steps li{padding:.15rem .7rem;border-radius:99px;background:var(--card);color:var(--soft);"
    "font-size:.85rem}ol.steps li.past{background:#dff3ea;color:var(--green)}"
    "ol.steps li.here{background:var(--blue);color:#fff}"
    ".error{background:#fbe4e2;color:var(--red);border-radius:6px;padding:.6rem .8rem;"
    "overflow-wrap:anywhere}"
    ".rule{border:1px solid var(--line);border-radius:8px;padding:.8rem;margin:1rem 0}"
    ".picture{overflow-x:auto}.picture svg{display:block;margin:0 auto}"
    ".index{columns:16rem;font-size:.9rem;padding:0;list-style:none}"
    "@media(max-width:40rem){header .when{float:none;display:block}.minor{display:none}"
    "main{padding:0 .7rem 2rem}td,th{padding-right:.6rem}}";

std::string Time(convert::UnixTime time) {
  const std::time_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  if (seconds == 0) return "";
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts));
}

// `title` is text, `body` is HTML.
std::string Page(std::string_view title, std::string_view body, convert::UnixTime refreshed) {
  const bool refresh = refreshed != convert::UnixTime();
  return fmt::format(
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<link rel=\"icon\" href=\"data:,\">{}<title>{}</title><style>{}</style></head><body>"
      "<header><span class=\"when\">{}</span><a href=\"/\">Tenon</a></header><main><h1>{}</h1>{}"
      "</main></body></html>\n",
      refresh ? "<meta http-equiv=\"refresh\" content=\"3\">" : "", EscapedXml(title), kStyle,
      refresh ? Time(refreshed) + ", again every 3 s" : "", EscapedXml(title), body);
}

std::string Badge(std::string_view kind) {
  return fmt::format("<span class=\"badge {0}\">{0}</span>", kind);
}

std::string State(const Job& job) {
  return Badge(convert::NameOf(job.state)) + (job.paused ? " " + Badge("paused") : "");
}

std::string Bar(double done, double total, std::string_view style) {
  const double percent = total > 0 ? std::clamp(100 * done / total, 0.0, 100.0) : 0;
  return fmt::format("<span class=\"bar {}\"><i style=\"width:{:.1f}%\"></i></span>", style,
                     percent);
}

// What is done of the phase that a job is in, and how long it will take; empty: there is no count.
std::string Done(const Job& job, convert::UnixTime now, std::string_view style) {
  std::uint64_t done = job.shards_done, total = job.shards_total;
  const char* what = "shards";
  if (job.state == JobState::kReducing) {
    done = job.proofs_done;
    total = job.proofs_total;
    what = "proofs of this round";
  }
  if (total == 0 || job.state == JobState::kDone) return "";
  const double left = SecondsLeft(job, now);
  return fmt::format("{} {} of {} {}{}", Bar(double(done), double(total), style), Grouped(done),
                     Grouped(total), what,
                     left < 0 ? "" : fmt::format(", about {} left", Duration(left)));
}

std::string PackName(const Job& job) {
  return fmt::format("{}@{}", job.spec.pack_name, job.spec.pack_version);
}

std::string PackLink(const std::string& reference) {
  return fmt::format("<a href=\"/packs/{0}\">{0}</a>", EscapedXml(reference));
}

std::string PackOf(const Job& job) {
  return job.state == JobState::kDone ? PackLink(job.pack_reference) : EscapedXml(PackName(job));
}

std::string Tile(const std::string& value, std::string_view what) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>", value, what);
}

std::string Table(std::string_view head, const std::string& rows) {
  return fmt::format("<div class=\"scroll\"><table><tr>{}</tr>{}</table></div>", head, rows);
}

std::string Jobs(const PageOverview& o) {
  if (o.jobs.empty()) {
    return "<p class=\"muted\">No jobs yet. <code>tenon job submit --universe matrix</code> makes "
           "one.</p>";
  }
  std::string rows;
  for (const Job& job : o.jobs) {
    rows += fmt::format(
        "<tr><td><a href=\"/jobs/{0}\">{0}</a></td><td>{1}</td><td>{2}</td><td>{3}</td>"
        "<td class=\"num\">{4}</td><td class=\"num\">{5}</td><td class=\"num minor\">{6}</td>"
        "<td class=\"minor\">{7}</td></tr>",
        EscapedXml(job.id), State(job), PackOf(job),
        job.error.empty() ? Done(job, o.now, "") : EscapedXml(job.error.substr(0, 60)),
        Grouped(job.counts.graphs), Grouped(job.counts.rules),
        Duration(double(job.cpu.count()) / 1000), Time(job.submitted_at));
  }
  return Table(
             "<th>Job</th><th>State</th><th>Pack</th><th>Progress</th><th class=\"num\">Graphs</th>"
             "<th class=\"num\">Rules</th><th class=\"num minor\">CPU</th>"
             "<th class=\"minor\">Submitted</th>",
             rows) +
         (o.more_jobs ? "<p class=\"muted\">Older ones: <code>tenon job list --all</code></p>"
                      : "");
}

std::string Nodes(const PageOverview& o) {
  if (o.nodes.empty()) {
    return "<p class=\"muted\">No nodes. <code>tenon serve store | worker | verifier</code> start "
           "some.</p>";
  }
  std::string rows;
  for (const PageNode& node : o.nodes) {
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}{}</td><td class=\"num\">{}</td><td>{} ago</td>"
        "<td class=\"minor\">{}</td><td class=\"minor\">{}</td></tr>",
        EscapedXml(node.id), EscapedXml(node.role),
        node.silent ? Badge("silent") : "<span class=\"badge done\">there</span>",
        node.draining ? " " + Badge("leaving") : "", node.leases, Duration(node.seen_seconds_ago),
        EscapedXml(node.address), EscapedXml(node.version));
  }
  return Table(
      "<th>Node</th><th>Role</th><th></th><th class=\"num\">Leases</th><th>Last heartbeat</th>"
      "<th class=\"minor\">Address</th><th class=\"minor\">Version</th>",
      rows);
}

std::string Packs(const PageOverview& o) {
  if (o.packs.empty()) return "<p class=\"muted\">The registry has no packs yet.</p>";
  std::string rows;
  for (const PagePack& pack : o.packs) {
    rows += fmt::format(
        "<tr><td>{}</td><td class=\"num\">{}</td><td>{}</td><td "
        "class=\"minor\"><code>{}</code></td>"
        "<td class=\"minor\"><code>{}</code></td></tr>",
        PackLink(pack.reference), pack.rules,
        EscapedXml(fmt::format("{}", fmt::join(pack.channels, " "))),
        EscapedXml(pack.address.substr(0, 12)), EscapedXml(pack.signer.substr(0, 12)));
  }
  return Table(
      "<th>Pack</th><th class=\"num\">Rules</th><th>Channels</th><th class=\"minor\">Content</th>"
      "<th class=\"minor\">Signer</th>",
      rows);
}

// One line of a histogram.
struct Count {
  std::string name;
  std::uint64_t value = 0;
  std::string_view style;
};

std::string Histogram(const std::vector<Count>& counts) {
  std::uint64_t most = 1;
  for (const Count& c : counts) most = std::max(most, c.value);
  std::string out = "<div class=\"bars\">";
  for (const Count& c : counts) {
    out += fmt::format("<span>{}</span>{}<em>{}</em>", c.name,
                       Bar(double(c.value), double(most), c.style), Grouped(c.value));
  }
  return out + "</div>";
}

std::string Steps(const Job& job) {
  std::string out = "<ol class=\"steps\">";
  for (int s = int(JobState::kSubmitted); s <= int(JobState::kDone); ++s) {
    // Of a job that failed or was cancelled, nobody knows any more how far it came.
    const bool ended = job.state == JobState::kFailed || job.state == JobState::kCancelled;
    const bool past = !ended && (s < int(job.state) || job.state == JobState::kDone);
    const bool here = s == int(job.state) && !past;
    out += fmt::format("<li class=\"{}\">{}</li>",
                       past   ? "past"
                       : here ? "here"
                              : "",
                       convert::NameOf(JobState(s)));
  }
  if (job.state > JobState::kDone) out += "<li>" + State(job) + "</li>";
  return out + "</ol>";
}

std::string Details(const Job& job) {
  std::string rows;
  const auto row = [&](std::string_view name, const std::string& html) {
    if (html.empty()) return;
    rows += fmt::format("<tr><th>{}</th><td class=\"wrap\">{}</td></tr>", name, html);
  };
  row("Pack", PackOf(job));
  row("Content",
      job.pack_address.empty() ? "" : "<code>" + EscapedXml(job.pack_address) + "</code>");
  row("Operators at most", std::to_string(job.spec.max_operators));
  row("Priority", std::to_string(job.spec.priority));
  row("Shards", fmt::format("{} of {} done, {} leased", Grouped(job.shards_done),
                            Grouped(job.shards_total), Grouped(job.shards_leased)));
  row("Rounds of proofs", job.round > 0 ? std::to_string(job.round) : "");
  row("Classes", Grouped(job.counts.classes));
  row("Equivalent pairs", Grouped(job.counts.equivalent_pairs));
  row("Pairs not derived", Grouped(job.counts.underivable));
  row("CPU time", Duration(double(job.cpu.count()) / 1000));
  row("Submitted", Time(job.submitted_at));
  row("Started", Time(job.started_at));
  row("Ended", Time(job.ended_at));
  return "<div class=\"scroll\"><table>" + rows + "</table></div>";
}

}  // namespace

double SecondsLeft(const Job& job, convert::UnixTime now) {
  const bool counts = job.state == JobState::kEnumerating && !job.paused && job.shards_done > 0;
  if (!counts || now <= job.started_at) return -1;
  const std::chrono::duration<double> so_far = now - job.started_at;
  return so_far.count() * double(job.shards_total - job.shards_done) / double(job.shards_done);
}

std::string OverviewPage(const PageOverview& o) {
  const board::Figures& f = o.figures;
  std::uint64_t open = 0, tasks = 0, leases = 0, there = 0, rules = 0;
  for (std::size_t s = 1; s < f.jobs.size(); ++s) {
    open += convert::HasEnded(static_cast<JobState>(s)) ? 0 : f.jobs[s];
  }
  for (const std::uint64_t n : f.open) tasks += n;
  for (const std::uint64_t n : f.leases) leases += n;
  for (const PageNode& node : o.nodes) there += node.silent ? 0 : 1;
  for (const PagePack& pack : o.packs) rules += pack.rules;
  const std::string body = "<div class=\"tiles\">" + Tile(Grouped(open), "open jobs") +
                           Tile(fmt::format("{} of {}", there, o.nodes.size()), "nodes there") +
                           Tile(Grouped(leases), "leases") + Tile(Grouped(tasks), "open tasks") +
                           Tile(Grouped(o.packs.size()), "packs") +
                           Tile(Grouped(rules), "rules in packs") + "</div><h2>Jobs</h2>" +
                           Jobs(o) + "<h2>Nodes</h2>" + Nodes(o) + "<h2>Packs</h2>" + Packs(o);
  return Page("Rewrite rules", body, o.now);
}

std::string JobPage(const Job& job, convert::UnixTime now) {
  const convert::GenerationCounts& c = job.counts;
  std::string body = Steps(job);
  if (!convert::HasEnded(job.state)) body += "<p>" + Done(job, now, "wide") + "</p>";
  if (!job.error.empty()) body += "<p class=\"error\">" + EscapedXml(job.error) + "</p>";
  body += "<div class=\"tiles\">" + Tile(Grouped(c.graphs), "graphs") +
          Tile(Grouped(c.candidates), "candidates") + Tile(Grouped(c.proved), "proved") +
          Tile(Grouped(c.rules), "rules published") + "</div>";
  if (c.candidates > 0) {
    body += "<h2>Verdicts</h2>" + Histogram({{"proved", c.proved, "green"},
                                             {"refuted", c.refuted, "red"},
                                             {"unproved", c.unproved, "amber"}});
  }
  if (!c.graphs_by_size.empty()) {
    std::vector<Count> sizes;
    for (std::size_t k = 0; k < c.graphs_by_size.size(); ++k) {
      sizes.push_back(
          {fmt::format("{} operator{}", k + 1, k == 0 ? "" : "s"), c.graphs_by_size[k], ""});
    }
    body += "<h2>Graphs by size</h2>" + Histogram(sizes);
  }
  if (!job.set_aside.empty()) {
    std::string rows;
    for (const convert::SetAside& s : job.set_aside) {
      rows += fmt::format(
          "<tr><td class=\"num\">{}</td><td class=\"wrap\">{}</td><td class=\"wrap\">{}</td></tr>",
          s.shard, EscapedXml(s.last_error),
          EscapedXml(fmt::format("{}", fmt::join(s.workers, " "))));
    }
    body += "<h2>Set aside</h2>" +
            Table("<th class=\"num\">Shard</th><th>Last error</th><th>Workers</th>", rows);
  }
  body += "<h2>Details</h2>" + Details(job);
  body += "<h2>Universe</h2><details><summary>Show</summary><pre>" + EscapedXml(job.spec.universe) +
          "</pre></details>";
  return Page(fmt::format("Job {}: {}", job.id, PackName(job)), body,
              convert::HasEnded(job.state) ? convert::UnixTime() : now);
}

std::string PackPage(const registry::PackFile& pack) {
  std::string body = fmt::format(
      "<p>{} rules in {} forms, all proved. Content <code>{}</code>, signed by "
      "<code>{}</code>.</p>",
      pack::FamilyCount(pack.content), pack.content.rules.size(), pack.address,
      pack.signer ? registry::ToHex(*pack.signer) : "nobody");
  std::string index, rules;
  std::size_t pictures = 0;
  for (const pack::PackedRule& packed : pack.content.rules) {
    const rules::Rule& rule = packed.rule;
    const std::string name = EscapedXml(rule.name);
    index += fmt::format("<li><a href=\"#{0}\">{0}</a></li>", name);
    rules += fmt::format(
        "<section class=\"rule\" id=\"{0}\"><h3>{0} <span class=\"badge\">{1}</span>{2}</h3>", name,
        pack::NameOf(rule.float_class),
        packed.corrected ? " <span class=\"badge\">corrected</span>" : "");
    if (pictures++ < kPicturesMax) {
      const std::string svg =
          optimizer::ToSvg(optimizer::PicturesOf(rule), {.arrow = rule.both ? "<=>" : "=>"});
      rules +=
          "<div class=\"picture\">" + svg.substr(std::min(svg.find("<svg"), svg.size())) + "</div>";
    }
    rules += "<pre>" + EscapedXml(rules::PrintRule(rule)) + "</pre></section>";
  }
  if (pictures > kPicturesMax) {
    body += fmt::format("<p class=\"muted\">The first {} have pictures.</p>", kPicturesMax);
  }
  body += "<ul class=\"index\">" + index + "</ul>" + rules;
  return Page("Pack " + pack.reference(), body, {});
}

}  // namespace tenon::cli
