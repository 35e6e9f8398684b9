// The list of operators. Adding one: write its struct, name it here.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/ops/activation.h"
#include "core/ops/constant.h"
#include "core/ops/elementary.h"
#include "core/ops/layout.h"
#include "core/ops/matmul.h"
#include "core/ops/normalization.h"
#include "core/ops/opaque.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/window.h"

namespace tenon::ops {

using Operator = std::variant<Add, Sub, Mul, Neg, Relu, Sigmoid, Tanh, Exp, Reciprocal,  //
                              Div, Sqrt, Erf, Max, Min, Clip, LeakyRelu, Silu, Gelu,     //
                              MatMul,                                                    //
                              Transpose, Concat, Split, Slice, Pad, Enlarge, Reshape,    //
                              ReduceSum, ReduceMean, ReduceMax, Softmax,                 //
                              Conv, AveragePool, MaxPool, GlobalAveragePool,             //
                              BatchNormalization, LayerNormalization, RMSNormalization,  //
                              Fill, Eye, ConvIdentity, PoolKernel,                       //
                              Opaque>;

// One attribute of an operator, without its struct. Thread-compatible.
using AttrValue =
    std::variant<std::int64_t, double, Activation, Size, Short<std::int64_t>, Short<Size>>;
struct Attr {
  std::uint8_t number = 0;
  std::string_view name;
  AttrValue value;
};

const Info& InfoOf(const Operator& op);
inline std::string_view NameOf(const Operator& op) { return InfoOf(op).name; }
bool IsOpaque(const Operator& op);

// All operators with their default attributes, in the order of the list.
const std::vector<Operator>& AllOperators();
std::optional<Operator> OperatorByName(std::string_view name);
std::optional<Operator> OperatorByWireId(std::uint16_t wire_id);

// The attributes in the order of Fields().
std::vector<Attr> AttrsOf(const Operator& op);
// Sets an attribute. A Size that is constant is taken for a static integer and the reverse; a list
// of sizes likewise. InvalidArgument names the operator and the attribute when there is none of
// that name or the kind of value differs.
Status SetAttr(Operator& op, std::string_view name, const AttrValue& value);

// `op` with every symbolic attribute replaced by f(attribute).
Operator MapSizes(const Operator& op, const std::function<Size(const Size&)>& f);

std::size_t Hash(const Operator& op);

// "none", "relu", ..
std::string_view NameOf(Activation activation);
std::optional<Activation> ActivationByName(std::string_view name);

}  // namespace tenon::ops
