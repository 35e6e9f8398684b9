// tenon pack export
#include <fmt/format.h>

#include <vector>

#include "client/cli/commands/commands.h"
#include "client/cli/commands/packs.h"
#include "client/cli/files.h"
#include "core/rules/text.h"
#include "interop/egg.h"
#include "interop/export_peer.h"
#include "interop/flexflow_file.h"
#include "interop/taso_file.h"
#include "optimizer/explain/picture.h"

namespace tenon::cli {
namespace {

struct Exported {
  std::string text;
  std::size_t written = 0;
  std::vector<interop::LeftOut> left_out;
};

StatusOr<Exported> ToPeerFile(const std::vector<rules::Rule>& rules, bool taso) {
  ASSIGN_OR_RETURN(interop::PeerExport peers, interop::ExportToPeer(rules));
  return Exported{taso ? interop::WriteTaso(peers.rules) : interop::WriteFlexFlow(peers.rules),
                  peers.rules.size(), std::move(peers.left_out)};
}

StatusOr<Exported> ToEggFile(const std::vector<rules::Rule>& rules, const std::string& name) {
  Exported out;
  out.text = fmt::format(
      "// The rules of {}, for egg's `rewrite!`. An operator's name ends in the rank of its "
      "result;\n"
      "// its attributes are its first children.\nvec![\n",
      name);
  for (const rules::Rule& rule : rules) {
    const StatusOr<std::string> text = interop::ToEgg(rule);
    if (text.ok()) {
      out.text += fmt::format("    {},\n", *text);
      ++out.written;
    } else {
      out.text += fmt::format("    // {}: left out: {}\n", rule.name, base::Message(text.status()));
      out.left_out.push_back({rule.name, base::Message(text.status())});
    }
  }
  out.text += "]\n";
  return out;
}

// One graph after the other, which Graphviz takes for as many pages. The title of the source says
// what a picture does not show.
Exported ToDotFile(const std::vector<rules::Rule>& rules) {
  Exported out;
  for (const rules::Rule& rule : rules) {
    std::vector<optimizer::Picture> pictures = optimizer::PicturesOf(rule);
    std::string title = rule.name;
    for (const base::Condition& c : rule.where) {
      title += (title == rule.name ? " where " : ", ") + base::Print(c, rule.graph.symbols());
    }
    for (optimizer::Picture& picture : pictures) {
      picture.title = fmt::format("{}: {}", title, picture.title);
      title = rule.name;
    }
    out.text += optimizer::ToDot(pictures);
    ++out.written;
  }
  return out;
}

}  // namespace

Outcome ExportPackCommand(Context& context, const PackExportOptions& options) {
  RETURN_IF_ERROR(CheckWritable(options.out));
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(const registry::PackFile pack,
                   OpenPack(options.pack, registry::PackPolicy{.require_signature = false}));
  std::vector<rules::Rule> packed;
  for (const pack::PackedRule& rule : pack.content.rules) packed.push_back(rule.rule);
  const std::vector<rules::Rule> rules =
      options.format == "dot" ? packed : interop::Directions(packed);
  ASSIGN_OR_RETURN(const Exported exported,
                   options.format == "egg"   ? ToEggFile(rules, pack.reference())
                   : options.format == "dot" ? StatusOr<Exported>(ToDotFile(rules))
                                             : ToPeerFile(rules, options.format == "taso"));
  RETURN_IF_ERROR(WriteText(options.out, exported.text));
  Json left_out = Json::Array();
  for (const interop::LeftOut& rule : exported.left_out) {
    context.console.Print(fmt::format("left out: {}: {}", rule.rule, rule.reason));
    left_out.Append(Json::Object({{"rule", rule.rule}, {"reason", rule.reason}}));
  }
  context.console.Print(fmt::format(
      "{}: {} of {} {} written, {} left out", options.out, exported.written, rules.size(),
      options.format == "dot" ? "rules" : "directions of rules", exported.left_out.size()));
  RETURN_IF_ERROR(Deliver(Json::Object({{"format", options.format},
                                        {"pack", pack.reference()},
                                        {"rules", packed.size()},
                                        {"directions", rules.size()},
                                        {"written", exported.written},
                                        {"left_out", std::move(left_out)}}),
                          options.json, context.console));
  return ExitCode::kDone;
}

}  // namespace tenon::cli
