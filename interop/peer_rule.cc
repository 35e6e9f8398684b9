#include "interop/peer_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace tenon::interop {
namespace {

constexpr std::array<std::string_view, 26> kTypes = {
    "OP_INPUT",        "OP_WEIGHT",      "OP_ANY",          "OP_CONV2D",         "OP_DROPOUT",
    "OP_LINEAR",       "OP_POOL2D_MAX",  "OP_POOL2D_AVG",   "OP_RELU",           "OP_SIGMOID",
    "OP_TANH",         "OP_BATCHNORM",   "OP_CONCAT",       "OP_SPLIT",          "OP_RESHAPE",
    "OP_TRANSPOSE",    "OP_EW_ADD",      "OP_EW_MUL",       "OP_MATMUL",         "OP_MUL",
    "OP_ENLARGE",      "OP_MERGE_GCONV", "OP_CONSTANT_IMM", "OP_CONSTANT_ICONV", "OP_CONSTANT_ONE",
    "OP_CONSTANT_POOL"};
constexpr std::array<std::string_view, 15> kKeys = {
    "PM_OP_TYPE",  "PM_NUM_INPUTS", "PM_NUM_OUTPUTS", "PM_GROUP",      "PM_KERNEL_H",
    "PM_KERNEL_W", "PM_STRIDE_H",   "PM_STRIDE_W",    "PM_PAD",        "PM_ACTI",
    "PM_NUMDIM",   "PM_AXIS",       "PM_PERM",        "PM_OUTSHUFFLE", "PM_MERGE_GCONV_COUNT"};

constexpr std::int32_t kOutputsMax = 64;

// Reading one side: what is wrong with operator k, if anything.
Status CheckOperator(const std::vector<PeerOperator>& side, std::size_t k, std::string_view where) {
  const PeerOperator& op = side[k];
  const auto wrong = [&](const std::string& what) {
    return base::InvalidArgument(
        fmt::format("operator {} of the {} ({}) {}", k, where, op.name(), what));
  };
  if (op.type == PeerType::kSplit && (op.outputs() < 1 || op.outputs() > kOutputsMax)) {
    return wrong(fmt::format("has {} outputs; 1 to {} are possible", op.outputs(), kOutputsMax));
  }
  if (op.inputs.size() > kPeerOperatorsMax) {
    return wrong(
        fmt::format("has {} operands; {} are possible", op.inputs.size(), kPeerOperatorsMax));
  }
  for (const PeerTensor& input : op.inputs) {
    if (input.op < 0) {
      if (input.output != 0) {
        return wrong(fmt::format("reads output {} of variable {}, which has only output 0",
                                 input.output, input.op));
      }
      continue;
    }
    if (std::cmp_greater_equal(input.op, side.size())) {
      return wrong(fmt::format("reads operator {}, but there are only {}", input.op, side.size()));
    }
    if (std::cmp_greater_equal(input.op, k)) {
      return wrong(
          fmt::format("reads operator {}, which does not come before it: a cycle", input.op));
    }
    const std::int32_t outputs = side[static_cast<std::size_t>(input.op)].outputs();
    if (input.output < 0 || input.output >= outputs) {
      return wrong(fmt::format("reads output {} of operator {}, which has {}", input.output,
                               input.op, outputs));
    }
  }
  return OkStatus();
}

Status CheckMapped(const PeerTensor& tensor, const std::vector<PeerOperator>& side,
                   std::string_view where) {
  if (tensor.op < 0 || std::cmp_greater_equal(tensor.op, side.size())) {
    return base::InvalidArgument(
        fmt::format("an output is mapped to operator {} of the {}, which "
                    "has {} operators",
                    tensor.op, where, side.size()));
  }
  const std::int32_t outputs = side[static_cast<std::size_t>(tensor.op)].outputs();
  if (tensor.output < 0 || tensor.output >= outputs) {
    return base::InvalidArgument(
        fmt::format("an output is mapped to output {} of operator {} of the {}, which has {}",
                    tensor.output, tensor.op, where, outputs));
  }
  return OkStatus();
}

std::string Print(const std::vector<PeerOperator>& side) {
  std::string text;
  for (const PeerOperator& op : side) {
    std::string name(op.name());
    if (name.starts_with("OP_")) name = name.substr(3);
    text += fmt::format("{}{}(", text.empty() ? "" : "; ", name);
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      const PeerTensor& in = op.inputs[k];
      text += k > 0 ? ", " : "";
      text += in.op < 0 ? fmt::format("v{}", -std::int64_t{in.op}) : fmt::format("#{}", in.op);
      if (in.output > 0) text += fmt::format(".{}", in.output);
    }
    bool first = true;
    for (const auto& [key, value] : op.parameters) {
      text += fmt::format("{}{}={}", std::exchange(first, false) ? "; " : " ",
                          NameOf(key).substr(3), value);
    }
    text += ")";
  }
  return text;
}

}  // namespace

std::string_view NameOf(PeerType type) {
  const auto k = static_cast<std::size_t>(type);
  return k < kTypes.size() ? kTypes[k] : "foreign";
}

std::string_view NameOf(PeerKey key) {
  const auto k = static_cast<std::size_t>(key);
  return k < kKeys.size() ? kKeys[k] : "foreign";
}

std::optional<PeerType> PeerTypeOf(std::string_view name) {
  const auto it = std::find(kTypes.begin(), kTypes.end(), name);
  if (it == kTypes.end()) return std::nullopt;
  return static_cast<PeerType>(it - kTypes.begin());
}

std::optional<PeerKey> PeerKeyOf(std::string_view name) {
  const auto it = std::find(kKeys.begin(), kKeys.end(), name);
  if (it == kKeys.end()) return std::nullopt;
  return static_cast<PeerKey>(it - kKeys.begin());
}

std::int32_t PeerOperator::outputs() const {
  if (type != PeerType::kSplit) return 1;
  const auto it = parameters.find(PeerKey::kOutputs);
  return it == parameters.end() ? 2 : it->second;
}

std::string_view PeerOperator::name() const {
  return type == PeerType::kForeign ? std::string_view(foreign) : NameOf(type);
}

Status Validate(const PeerRule& rule) {
  for (const auto* side : {&rule.source, &rule.target}) {
    const char* where = side == &rule.source ? "source" : "target";
    if (side->empty()) return base::InvalidArgument(fmt::format("the {} has no operator", where));
    if (side->size() > kPeerOperatorsMax) {
      return base::InvalidArgument(fmt::format("the {} has {} operators; {} are possible", where,
                                               side->size(), kPeerOperatorsMax));
    }
    for (std::size_t k = 0; k < side->size(); ++k) {
      RETURN_IF_ERROR(CheckOperator(*side, k, where));
    }
  }
  std::set<std::int32_t> variables;
  for (const PeerOperator& op : rule.source) {
    for (const PeerTensor& in : op.inputs) variables.insert(in.op);
  }
  for (std::size_t k = 0; k < rule.target.size(); ++k) {
    for (const PeerTensor& in : rule.target[k].inputs) {
      if (in.op < 0 && !variables.contains(in.op)) {
        return base::InvalidArgument(
            fmt::format("operator {} of the target ({}) reads variable {}, which the source does "
                        "not have",
                        k, rule.target[k].name(), in.op));
      }
    }
  }
  if (rule.outputs.empty()) return base::InvalidArgument("no output is mapped");
  if (rule.outputs.size() > kPeerOperatorsMax) {
    return base::InvalidArgument(fmt::format("{} outputs are mapped; {} are possible",
                                             rule.outputs.size(), kPeerOperatorsMax));
  }
  for (const PeerOutput& out : rule.outputs) {
    RETURN_IF_ERROR(CheckMapped(out.source, rule.source, "source"));
    RETURN_IF_ERROR(CheckMapped(out.target, rule.target, "target"));
  }
  return OkStatus();
}

std::string Print(const PeerRule& rule) {
  return fmt::format("{}  =>  {}", Print(rule.source), Print(rule.target));
}

}  // namespace tenon::interop
