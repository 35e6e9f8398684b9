#include "optimizer/onnx/tensor_data.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fmt/core.h>

namespace tenon::optimizer {
namespace {

using graph::DataType;
using onnx::TensorProto;
static_assert(std::endian::native == std::endian::little, "raw data is little-endian");

// A float of `exponent` and `mantissa` bits (and a sign) in the low bits of `bits`.
double FromSmallFloat(std::uint32_t bits, int exponent, int mantissa) {
  const double sign = (bits >> (exponent + mantissa) & 1) != 0 ? -1.0 : 1.0;
  const std::uint32_t e = bits >> mantissa & ((1u << exponent) - 1);
  const std::uint32_t m = bits & ((1u << mantissa) - 1);
  const int bias = (1 << (exponent - 1)) - 1;
  if (e == (1u << exponent) - 1) return m == 0 ? sign * INFINITY : std::nan("");
  if (e == 0) return sign * std::ldexp(double(m), 1 - bias - mantissa);
  return sign * std::ldexp(double(m | 1u << mantissa), int(e) - bias - mantissa);
}

// The inverse, rounding to the nearest, ties to even; too large becomes infinite.
std::uint32_t ToSmallFloat(double x, int exponent, int mantissa) {
  const std::uint32_t sign = std::signbit(x) ? 1u << (exponent + mantissa) : 0;
  const std::uint32_t infinite = ((1u << exponent) - 1) << mantissa;
  if (std::isnan(x)) return sign | infinite | 1u << (mantissa - 1);
  const double a = std::fabs(x);
  if (std::isinf(a)) return sign | infinite;
  const int bias = (1 << (exponent - 1)) - 1;
  int e = 0;
  std::frexp(a, &e);                                      // a = f * 2^e, f in [0.5, 1).
  const int unit = std::max(e - 1, 1 - bias) - mantissa;  // The weight of the last bit.
  const double m = std::nearbyint(std::ldexp(a, -unit));  // Exact up to the rounding.
  if (m == 0) return sign;
  // A mantissa that rounds up to the next power of two carries into the exponent by itself.
  const std::int64_t packed =
      std::int64_t(m) + (std::int64_t(unit + mantissa - (1 - bias)) << mantissa);
  return packed >= std::int64_t(infinite) ? sign | infinite : sign | std::uint32_t(packed);
}

template <class T>
std::string Pack(const auto& values) {
  std::string out(std::size_t(values.size()) * sizeof(T), '\0');
  std::size_t at = 0;
  for (const auto& v : values) {
    const T t = static_cast<T>(v);
    std::memcpy(out.data() + at, &t, sizeof(T));
    at += sizeof(T);
  }
  return out;
}

template <class T>
T Load(std::string_view bytes, std::size_t k) {
  T t;
  std::memcpy(&t, bytes.data() + k * sizeof(T), sizeof(T));
  return t;
}

// How many elements the typed field that belongs to the type holds.
std::int64_t TypedCount(const TensorProto& t) {
  switch (t.data_type()) {
    case TensorProto::FLOAT:
      return t.float_data_size();
    case TensorProto::COMPLEX64:
      return t.float_data_size() / 2;
    case TensorProto::DOUBLE:
      return t.double_data_size();
    case TensorProto::COMPLEX128:
      return t.double_data_size() / 2;
    case TensorProto::INT64:
      return t.int64_data_size();
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      return t.uint64_data_size();
    case TensorProto::STRING:
      return t.string_data_size();
    default:
      return t.int32_data_size();
  }
}

// The typed field as raw data.
std::string TypedBytes(const TensorProto& t) {
  switch (t.data_type()) {
    case TensorProto::FLOAT:
    case TensorProto::COMPLEX64:
      return Pack<float>(t.float_data());
    case TensorProto::DOUBLE:
    case TensorProto::COMPLEX128:
      return Pack<double>(t.double_data());
    case TensorProto::INT64:
      return Pack<std::int64_t>(t.int64_data());
    case TensorProto::UINT32:
      return Pack<std::uint32_t>(t.uint64_data());
    case TensorProto::UINT64:
      return Pack<std::uint64_t>(t.uint64_data());
    case TensorProto::INT32:
      return Pack<std::int32_t>(t.int32_data());
    default:
      return ElementSize(t.data_type()) == 1 ? Pack<std::uint8_t>(t.int32_data())
                                             : Pack<std::uint16_t>(t.int32_data());
  }
}

StatusOr<std::int64_t> ParseNumber(std::string_view key, const std::string& text) {
  std::int64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size() || v < 0) {
    return base::InvalidArgument(
        fmt::format("external_data.{} is '{}', not a number of bytes", key, text));
  }
  return v;
}

}  // namespace

StatusOr<std::int64_t> CountElements(std::span<const std::int64_t> dims) {
  std::int64_t n = 1;
  bool empty = false;
  for (std::int64_t d : dims) {
    if (d < 0) return base::InvalidArgument(fmt::format("dims has the negative entry {}", d));
    empty = empty || d == 0;
    if (d > 1) n = n > kElementsMax / d ? kElementsMax + 1 : n * d;
  }
  if (n > kElementsMax) return base::ResourceExhausted("dims describe more than 2^40 elements");
  return empty ? 0 : n;
}

std::int64_t ElementSize(int data_type) {
  switch (data_type) {
    case TensorProto::BOOL:
    case TensorProto::INT8:
    case TensorProto::UINT8:
      return 1;
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
    case TensorProto::INT16:
    case TensorProto::UINT16:
      return 2;
    case TensorProto::FLOAT:
    case TensorProto::INT32:
    case TensorProto::UINT32:
      return 4;
    case TensorProto::DOUBLE:
    case TensorProto::INT64:
    case TensorProto::UINT64:
    case TensorProto::COMPLEX64:
      return 8;
    case TensorProto::COMPLEX128:
      return 16;
    default:
      return 0;
  }
}

DataType ToDataType(int data_type) {
  return data_type >= 0 && data_type <= int(DataType::kBfloat16) ? DataType(data_type)
                                                                 : DataType::kUndefined;
}

bool IsExternal(const TensorProto& tensor) {
  return tensor.data_location() == TensorProto::EXTERNAL;
}

StatusOr<DataRange> DataRangeOf(const TensorProto& tensor) {
  DataRange out;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") out.location = entry.value();
    if (entry.key() == "offset") {
      ASSIGN_OR_RETURN(out.offset, ParseNumber("offset", entry.value()));
    }
    if (entry.key() == "length") {
      ASSIGN_OR_RETURN(out.length, ParseNumber("length", entry.value()));
    }
  }
  if (out.location.empty()) return base::InvalidArgument("external_data has no location");
  const std::filesystem::path path(out.location);
  bool leaves = path.is_absolute();
  for (const auto& part : path) leaves = leaves || part == "..";
  if (leaves) {
    return base::InvalidArgument(
        fmt::format("external_data.location '{}' leaves the model's folder; move the data file "
                    "beside the model",
                    out.location));
  }
  return out;
}

Status CheckTensor(const TensorProto& tensor, const std::filesystem::path& folder) {
  ASSIGN_OR_RETURN(const std::int64_t count,
                   CountElements({tensor.dims().data(), std::size_t(tensor.dims_size())}));
  const std::int64_t size = ElementSize(tensor.data_type());
  if (tensor.data_type() == TensorProto::UNDEFINED)
    return base::InvalidArgument("data_type is missing");
  if (tensor.has_segment()) return base::InvalidArgument("segments are not supported");
  if (IsExternal(tensor)) {
    ASSIGN_OR_RETURN(const DataRange range, DataRangeOf(tensor));
    const std::filesystem::path file = folder / range.location;
    std::error_code error;
    const auto bytes = std::filesystem::file_size(file, error);
    if (error) {
      return base::DataLoss(
          fmt::format("its external data '{}' cannot be read: {}", file.string(), error.message()));
    }
    const std::int64_t available =
        std::int64_t(bytes) < range.offset ? 0 : std::int64_t(bytes) - range.offset;
    const std::int64_t length = range.length < 0 ? available : range.length;
    if (size != 0 && length != count * size && (range.length >= 0 || length < count * size)) {
      return base::InvalidArgument(
          fmt::format("dims and data_type need {} bytes of external data, "
                      "external_data gives {}",
                      count * size, length));
    }
    if (length > available) {
      return base::DataLoss(fmt::format("needs bytes {} to {} of '{}', which has only {}",
                                        range.offset, range.offset + length, file.string(), bytes));
    }
    return OkStatus();
  }
  if (size == 0 && tensor.data_type() != TensorProto::STRING) return OkStatus();  // Newer types.
  if (tensor.has_raw_data()) {
    if (std::int64_t(tensor.raw_data().size()) != count * size) {
      return base::InvalidArgument(fmt::format("dims and data_type need {} bytes, raw_data has {}",
                                               count * size, tensor.raw_data().size()));
    }
  } else if (TypedCount(tensor) != count) {
    return base::InvalidArgument(
        fmt::format("dims describe {} elements, the data has {}", count, TypedCount(tensor)));
  }
  return OkStatus();
}

StatusOr<std::string> ReadRange(const std::filesystem::path& file, std::int64_t offset,
                                std::int64_t length) {
  std::string out(std::size_t(length), '\0');
  std::ifstream in(file, std::ios::binary);
  in.seekg(offset);
  in.read(out.data(), length);
  if (!in || in.gcount() != length) {
    return base::DataLoss(
        fmt::format("cannot read bytes {} to {} of '{}'", offset, offset + length, file.string()));
  }
  return out;
}

StatusOr<std::string> ReadBytes(const TensorProto& tensor, const std::filesystem::path& folder) {
  if (IsExternal(tensor)) {
    ASSIGN_OR_RETURN(const DataRange range, DataRangeOf(tensor));
    ASSIGN_OR_RETURN(const std::int64_t count,
                     CountElements({tensor.dims().data(), std::size_t(tensor.dims_size())}));
    return ReadRange(folder / range.location, range.offset,
                     count * ElementSize(tensor.data_type()));
  }
  if (tensor.has_raw_data()) return tensor.raw_data();
  return TypedBytes(tensor);
}

StatusOr<std::vector<double>> ReadDoubles(const TensorProto& tensor,
                                          const std::filesystem::path& folder) {
  std::string owned;
  std::string_view bytes;
  if (!IsExternal(tensor) && tensor.has_raw_data()) {
    bytes = tensor.raw_data();  // Not copied: it may be large.
  } else {
    ASSIGN_OR_RETURN(owned, ReadBytes(tensor, folder));
    bytes = owned;
  }
  const std::int64_t size = ElementSize(tensor.data_type());
  CHECK(size > 0 && graph::IsFloating(ToDataType(tensor.data_type())));
  std::vector<double> out(bytes.size() / std::size_t(size));
  for (std::size_t k = 0; k < out.size(); ++k) {
    switch (tensor.data_type()) {
      case TensorProto::FLOAT:
        out[k] = double(Load<float>(bytes, k));
        break;
      case TensorProto::DOUBLE:
        out[k] = Load<double>(bytes, k);
        break;
      case TensorProto::FLOAT16:
        out[k] = FromSmallFloat(Load<std::uint16_t>(bytes, k), 5, 10);
        break;
      default:
        out[k] = FromSmallFloat(Load<std::uint16_t>(bytes, k), 8, 7);
        break;
    }
  }
  return out;
}

StatusOr<std::vector<std::int64_t>> ReadInts(const TensorProto& tensor,
                                             const std::filesystem::path& folder) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(tensor, folder));
  std::vector<std::int64_t> out(bytes.size() / std::size_t(ElementSize(tensor.data_type())));
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k] = tensor.data_type() == TensorProto::INT64 ? Load<std::int64_t>(bytes, k)
                                                      : Load<std::int32_t>(bytes, k);
  }
  return out;
}

std::string EncodeDoubles(DataType dtype, std::span<const double> values) {
  CHECK(graph::IsFloating(dtype));
  if (dtype == DataType::kFloat) return Pack<float>(values);
  if (dtype == DataType::kDouble) return Pack<double>(values);
  std::vector<std::uint32_t> bits;
  bits.reserve(values.size());
  for (double v : values) {
    bits.push_back(dtype == DataType::kFloat16 ? ToSmallFloat(v, 5, 10) : ToSmallFloat(v, 8, 7));
  }
  return Pack<std::uint16_t>(bits);
}

}  // namespace tenon::optimizer
