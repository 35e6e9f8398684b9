// Operators that move elements: rows that are copied, or a reorder between two views.
#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "optimizer/device/cpu/kernel.h"

namespace tenon::optimizer::cpu {
namespace {

float* Elements(const dnnl::memory& memory) {
  return static_cast<float*>(memory.get_data_handle());
}

// Rows of `width` elements, `from_step` and `to_step` apart: what moves when an axis is cut out of
// a dense tensor or put into one. Runtimes copy them so, and the library's reorder and concat take
// several times as long.
struct Rows {
  std::int64_t count = 1, width = 1, from_step = 0, to_step = 0;
};

void CopyRows(Kernel& kernel, const Rows& rows, const dnnl::memory& from, std::int64_t from_offset,
              const dnnl::memory& to, std::int64_t to_offset) {
  kernel.Do([=] {
    const float* source = Elements(from) + from_offset;
    float* target = Elements(to) + to_offset;
    for (std::int64_t k = 0; k < rows.count; ++k) {
      std::memcpy(target, source, std::size_t(rows.width) * sizeof(float));
      source += rows.from_step;
      target += rows.to_step;
    }
  });
}

// The product of the extents from axis `first` to before `end`.
std::int64_t Product(const Dims& dims, std::int64_t first, std::int64_t end) {
  return std::accumulate(dims.begin() + first, dims.begin() + end, std::int64_t{1},
                         std::multiplies<>());
}
std::int64_t From(const Dims& dims, std::int64_t first) {
  return Product(dims, first, std::int64_t(dims.size()));
}

void MakeReorder(Kernel& kernel, const dnnl::memory& from, const dnnl::memory& to) {
  kernel.Do(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

// Images lie in blocks of channels (ImageLike), and their parts do not: who cuts one brings it to
// row-major order before, and what it made back into blocks after. This is what merging
// convolutions costs, more than the copy.

// The next operand, row-major when the steps from here on read it.
dnnl::memory ReadRowMajor(Kernel& kernel, const Dims& x) {
  const dnnl::memory operand = kernel.AddOperand(ImageLike(x));
  if (operand.get_desc() == Plain(x)) return operand;
  const dnnl::memory plain(Plain(x), kernel.library().engine);
  MakeReorder(kernel, operand, plain);
  return plain;
}

// Memory for a row-major result.
dnnl::memory StartRowMajor(Kernel& kernel, const Dims& y) {
  if (ImageLike(y) == Plain(y)) return kernel.AddOutput(Plain(y));
  return dnnl::memory(Plain(y), kernel.library().engine);
}
// Makes it the output, after the steps that write it.
void FinishRowMajor(Kernel& kernel, const dnnl::memory& result) {
  const Dims y = result.get_desc().dims();
  if (ImageLike(y) != Plain(y)) MakeReorder(kernel, result, kernel.AddOutput(ImageLike(y)));
}

// Positions [start, end) of an axis, every `step`-th of them.
void MakePart(Kernel& kernel, std::int64_t axis, std::int64_t start, std::int64_t end,
              std::int64_t step) {
  const Dims x = DimsOf(kernel.operand(0).extents), y = DimsOf(kernel.operation().output);
  const dnnl::memory from = ReadRowMajor(kernel, x), to = StartRowMajor(kernel, y);
  const std::int64_t inner = From(x, axis + 1);
  if (step == 1) {
    const std::int64_t width = (end - start) * inner;
    CopyRows(kernel, {Product(x, 0, axis), width, From(x, axis), width}, from, start * inner, to,
             0);
  } else {
    Dims strides = RowMajor(x);
    const std::int64_t offset = start * strides[std::size_t(axis)];
    strides[std::size_t(axis)] *= step;
    MakeReorder(kernel, View(from, Strided(y, strides), offset), to);
  }
  FinishRowMajor(kernel, to);
}

void MakeTranspose(Kernel& kernel, const ops::Transpose& transpose) {
  const Dims x = DimsOf(kernel.operand(0).extents), y = DimsOf(kernel.operation().output);
  const dnnl::memory from = kernel.AddOperand(Plain(x)), to = kernel.AddOutput(Plain(y));
  const Dims own = RowMajor(x);
  Dims strides;
  for (const std::int64_t axis : transpose.perm) strides.push_back(own[std::size_t(axis)]);
  if (strides.empty()) strides.push_back(1);  // A scalar.
  MakeReorder(kernel, View(from, Strided(y, strides)), to);
}

// x at `place` among zeros.
void MakePad(Kernel& kernel, const Dims& place) {
  const Dims x = DimsOf(kernel.operand(0).extents), y = DimsOf(kernel.operation().output);
  const Dims strides = RowMajor(y);
  const dnnl::memory from = ReadRowMajor(kernel, x), to = StartRowMajor(kernel, y);
  kernel.Do([to] { std::memset(to.get_data_handle(), 0, to.get_desc().get_size()); });
  const std::int64_t offset =
      std::inner_product(place.begin(), place.end(), strides.begin(), std::int64_t{0});
  MakeReorder(kernel, from, View(to, Strided(x, strides), offset));
  FinishRowMajor(kernel, to);
}

// Whether all parts are images that fill their blocks, put together along the channels: then whole
// blocks are copied, as rows of them would be.
bool ConcatsBlocks(const Kernel& kernel, const ops::Concat& concat) {
  const auto& parts = kernel.operation().operands;
  return concat.axis == 1 && std::ranges::all_of(parts, [](const Operand& part) {
           const Dims x = DimsOf(part.extents);
           return ImageLike(x) != Plain(x);
         });
}

void MakeConcat(Kernel& kernel, const ops::Concat& concat) {
  const Dims y = DimsOf(kernel.operation().output);
  const bool blocks = ConcatsBlocks(kernel, concat);
  const dnnl::memory to = blocks ? kernel.AddOutput(ImageLike(y)) : StartRowMajor(kernel, y);
  std::int64_t offset = 0;
  for (int k = 0; k < int(kernel.operation().operands.size()); ++k) {
    const Dims x = DimsOf(kernel.operand(k).extents);
    const std::int64_t width = From(x, concat.axis);
    const dnnl::memory from = blocks ? kernel.AddOperand(ImageLike(x)) : ReadRowMajor(kernel, x);
    CopyRows(kernel, {Product(x, 0, concat.axis), width, width, From(y, concat.axis)}, from, 0, to,
             offset);
    offset += width;
  }
  if (!blocks) FinishRowMajor(kernel, to);
}

}  // namespace

bool MakeMovement(Kernel& kernel) {
  const ops::Operator& op = kernel.operation().op;
  if (const auto* transpose = std::get_if<ops::Transpose>(&op)) {
    MakeTranspose(kernel, *transpose);
  } else if (const auto* split = std::get_if<ops::Split>(&op)) {
    const std::int64_t width = kernel.operand(0).extents[int(split->axis)] / split->parts;
    MakePart(kernel, split->axis, split->index * width, (split->index + 1) * width, 1);
  } else if (const auto* slice = std::get_if<ops::Slice>(&op)) {
    MakePart(kernel, slice->axis, slice->start.constant(), slice->end.constant(), slice->step);
  } else if (const auto* concat = std::get_if<ops::Concat>(&op)) {
    MakeConcat(kernel, *concat);
  } else if (const auto* pad = std::get_if<ops::Pad>(&op)) {
    MakePad(kernel, ConstantsOf(pad->begins));
  } else if (std::holds_alternative<ops::Enlarge>(op)) {
    const graph::Extents &x = kernel.operand(0).extents, &y = kernel.operation().output;
    MakePad(kernel, {0, 0, (y[2] - x[2]) / 2, (y[3] - x[3]) / 2});
  } else {
    return false;
  }
  return true;
}

}  // namespace tenon::optimizer::cpu
