// A rule as the systems before ours write it down (TASO and FlexFlow): two lists of operators with
// integer parameters, without shapes and without conditions. What the numbers mean to TASO, which
// runs such a rule, is stated by interop/translate.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon::interop {

// The numbers are those of TASO's file format (docs/formats/peers.md).
enum class PeerType : std::int32_t {
  kInput = 0,
  kWeight = 1,
  kAny = 2,
  kConv = 3,
  kDropout = 4,
  kLinear = 5,
  kMaxPool = 6,
  kAveragePool = 7,
  kRelu = 8,
  kSigmoid = 9,
  kTanh = 10,
  kBatchNorm = 11,
  kConcat = 12,
  kSplit = 13,
  kReshape = 14,
  kTranspose = 15,
  kAdd = 16,
  kMul = 17,
  kMatMul = 18,
  kScalarMul = 19,
  kEnlarge = 20,
  kMergeGroups = 21,
  kIdentityMatrix = 22,
  kIdentityKernel = 23,
  kOnes = 24,
  kPoolKernel = 25,
  kForeign = -1,  // A name that is none of these; PeerOperator::foreign says which.
};

enum class PeerKey : std::int32_t {
  kOpType = 0,
  kInputs = 1,
  kOutputs = 2,
  kGroup = 3,
  kKernelH = 4,
  kKernelW = 5,
  kStrideH = 6,
  kStrideW = 7,
  kPad = 8,
  kActivation = 9,
  kRank = 10,
  kAxis = 11,
  kPermutation = 12,
  kOutShuffle = 13,
  kMergeCount = 14,
};

inline constexpr std::int32_t kPadSame = 0;
inline constexpr std::int32_t kPadValid = 1;

// "OP_CONV2D", "PM_KERNEL_H": the names FlexFlow's files use, and our messages.
std::string_view NameOf(PeerType type);
std::string_view NameOf(PeerKey key);
std::optional<PeerType> PeerTypeOf(std::string_view name);
std::optional<PeerKey> PeerKeyOf(std::string_view name);

struct PeerTensor {
  std::int32_t op = 0;  // Below 0: a variable of the rule; else an index into the same side.
  std::int32_t output = 0;
  friend auto operator<=>(const PeerTensor&, const PeerTensor&) = default;
};

struct PeerOperator {
  PeerType type = PeerType::kAny;
  std::string foreign;  // The name of a kForeign operator.
  std::vector<PeerTensor> inputs;
  std::map<PeerKey, std::int32_t> parameters;
  friend bool operator==(const PeerOperator&, const PeerOperator&) = default;

  // The number of outputs: that of the pieces for a split, else 1.
  std::int32_t outputs() const;
  std::string_view name() const;
};

struct PeerOutput {
  PeerTensor source;
  PeerTensor target;
  friend bool operator==(const PeerOutput&, const PeerOutput&) = default;
};

// A value type.
struct PeerRule {
  std::string name;
  std::vector<PeerOperator> source, target;
  std::vector<PeerOutput> outputs;
  friend bool operator==(const PeerRule&, const PeerRule&) = default;
};

inline constexpr std::size_t kPeerRulesMax = 100'000;
inline constexpr std::size_t kPeerOperatorsMax = 64;  // Of one side.

// InvalidArgument names the side, the operator and what is wrong with it: a reference to an
// operator that comes later (so a cycle, too), to an output that is not there, a variable that only
// the target has, nothing mapped, more than the limits.
Status Validate(const PeerRule& rule);

// "CONV2D(v7, v10; KERNEL_H=3 ..); RELU(#0) => ..": for people.
std::string Print(const PeerRule& rule);

}  // namespace tenon::interop
