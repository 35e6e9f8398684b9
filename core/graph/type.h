// The type of a tensor: element type and shape.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/poly.h"
#include "core/base/short.h"

namespace tenon::graph {

// The numbers are those of ONNX's TensorProto.DataType, and persisted.
enum class DataType : std::uint8_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
};

// Rules hold over the reals, so they apply to these only.
constexpr bool IsFloating(DataType t) {
  return t == DataType::kFloat || t == DataType::kFloat16 || t == DataType::kDouble ||
         t == DataType::kBfloat16;
}
std::string_view NameOf(DataType t);

// Extents; constant polynomials in a concrete graph, polynomials over dims in a rule. Rank 0 is a
// scalar.
using Shape = base::Short<base::Poly>;

struct TensorType {
  DataType dtype = DataType::kFloat;
  Shape shape;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// A shape with constant extents.
using Extents = base::Short<std::int64_t>;

// The extents when all are constant; CHECKs that they are. Use IsConcrete first where in doubt.
Extents Concrete(const Shape& shape);
bool IsConcrete(const Shape& shape);
Shape ToShape(const Extents& extents);
// The number of elements; 1 for a scalar. CHECKs that it fits 63 bits (importers bound extents).
std::int64_t ElementCount(const Extents& extents);

}  // namespace tenon::graph
