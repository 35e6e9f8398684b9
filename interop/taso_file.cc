#include "interop/taso_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <utility>

#include "core/base/check.h"
#include "taso/graph_subst.pb.h"

namespace tenon::interop {
namespace {

// Field 1 with a length: one rule of the collection.
constexpr std::uint32_t kRuleTag = 1 << 3 | 2;

StatusOr<PeerOperator> ToOperator(const taso::Operator& message) {
  PeerOperator op;
  const std::int32_t type = message.type();
  if (type < 0 || type > static_cast<std::int32_t>(PeerType::kPoolKernel)) {
    return base::InvalidArgument(fmt::format("{} is not the number of an operator", type));
  }
  op.type = static_cast<PeerType>(type);
  for (const taso::Tensor& input : message.input()) {
    op.inputs.push_back({input.op_id(), input.ts_id()});
  }
  for (const taso::Parameter& parameter : message.para()) {
    const std::int32_t key = parameter.key();
    if (key < 0 || key > static_cast<std::int32_t>(PeerKey::kMergeCount)) {
      return base::InvalidArgument(
          fmt::format("{} has a parameter {}, which is none", op.name(), key));
    }
    if (!op.parameters.emplace(static_cast<PeerKey>(key), parameter.value()).second) {
      return base::InvalidArgument(
          fmt::format("{} has {} twice", op.name(), NameOf(static_cast<PeerKey>(key))));
    }
  }
  return op;
}

StatusOr<PeerRule> ToRule(const taso::Rule& message) {
  PeerRule rule;
  for (const taso::Operator& op : message.src_op()) {
    ASSIGN_OR_RETURN(PeerOperator read, ToOperator(op));
    rule.source.push_back(std::move(read));
  }
  for (const taso::Operator& op : message.dst_op()) {
    ASSIGN_OR_RETURN(PeerOperator read, ToOperator(op));
    rule.target.push_back(std::move(read));
  }
  for (const taso::MapOutput& out : message.mapped_output()) {
    rule.outputs.push_back(
        {{out.src_op_id(), out.src_ts_id()}, {out.dst_op_id(), out.dst_ts_id()}});
  }
  RETURN_IF_ERROR(Validate(rule));
  return rule;
}

}  // namespace

// The collection is read rule by rule, and not as one message, so that an error names the rule.
StatusOr<std::vector<PeerRule>> ReadTaso(std::string_view bytes, std::string_view file) {
  std::vector<PeerRule> rules;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  const auto wrong = [&](const std::string& what) {
    return base::InvalidArgument(fmt::format("{}: rule {}: {}", file, rules.size(), what));
  };
  while (static_cast<std::size_t>(in.CurrentPosition()) < bytes.size()) {
    if (rules.size() == kPeerRulesMax) {
      return base::ResourceExhausted(fmt::format("{}: more than {} rules", file, kPeerRulesMax));
    }
    std::uint32_t length = 0;
    std::string body;
    if (in.ReadTag() != kRuleTag) return wrong("no rule starts here: not a rule file of TASO");
    if (!in.ReadVarint32(&length) || length > bytes.size() ||
        !in.ReadString(&body, static_cast<int>(length))) {
      return wrong("the file ends within it");
    }
    taso::Rule message;
    if (!message.ParsePartialFromString(body)) return wrong("its bytes are no rule");
    if (!message.IsInitialized()) {
      return wrong(fmt::format("it lacks {}", message.InitializationErrorString()));
    }
    StatusOr<PeerRule> rule = ToRule(message);
    if (!rule.ok()) return wrong(base::Message(rule.status()));
    rule->name = fmt::format("taso.{}", rules.size());
    rules.push_back(*std::move(rule));
  }
  if (rules.empty()) return base::InvalidArgument(fmt::format("{}: there is no rule in it", file));
  return rules;
}

std::string WriteTaso(const std::vector<PeerRule>& rules) {
  taso::RuleCollection collection;
  for (const PeerRule& rule : rules) {
    CHECK(Validate(rule).ok());
    taso::Rule& message = *collection.add_rule();
    for (const auto* side : {&rule.source, &rule.target}) {
      for (const PeerOperator& op : *side) {
        CHECK(op.type != PeerType::kForeign);
        taso::Operator& to = side == &rule.source ? *message.add_src_op() : *message.add_dst_op();
        to.set_type(static_cast<std::int32_t>(op.type));
        for (const PeerTensor& in : op.inputs) {
          taso::Tensor& tensor = *to.add_input();
          tensor.set_op_id(in.op);
          tensor.set_ts_id(in.output);
        }
        for (const auto& [key, value] : op.parameters) {
          taso::Parameter& parameter = *to.add_para();
          parameter.set_key(static_cast<std::int32_t>(key));
          parameter.set_value(value);
        }
      }
    }
    for (const PeerOutput& out : rule.outputs) {
      taso::MapOutput& to = *message.add_mapped_output();
      to.set_src_op_id(out.source.op);
      to.set_src_ts_id(out.source.output);
      to.set_dst_op_id(out.target.op);
      to.set_dst_ts_id(out.target.output);
    }
  }
  return collection.SerializeAsString();
}

}  // namespace tenon::interop
