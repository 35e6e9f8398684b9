#include "optimizer/device/cpu/kernel.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/check.h"

namespace tenon::optimizer::cpu {
namespace {

// Of all tensors of one operation. Above it, the operation is estimated.
constexpr double kBytesMax = 4e9;

float* Elements(const dnnl::memory& memory) {
  return static_cast<float*>(memory.get_data_handle());
}

void Reorder(const Library& library, dnnl::memory from, dnnl::memory to) {
  dnnl::stream stream = library.stream;
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
}

// Numbers from 1/64 to 1, of both signs: nothing is denormal, zero or not finite.
void FillWithNumbers(std::span<float> elements) {
  std::uint32_t x = 1;
  for (float& e : elements) {
    x = x * 1664525u + 1013904223u;
    const float size = float(1 + (x >> 26)) / 64;
    e = (x >> 20 & 1) != 0 ? size : -size;
  }
}

bool Make(Kernel& kernel) {
  return MakeConvolution(kernel) || MakeProduct(kernel) || MakePooling(kernel) ||
         MakePointwise(kernel) || MakeReduction(kernel) || MakeNormalization(kernel) ||
         MakeMovement(kernel);
}

}  // namespace

Kernel::Kernel(const Library& library, const Operation& operation)
    : library_(library), operation_(operation) {}

dnnl::memory Kernel::AddOperand(const Desc& desc) {
  const int first = operand(int(operands_.size())).same_as;
  if (first >= 0 && operands_[std::size_t(first)].get_desc() == desc) {
    operands_.push_back(operands_[std::size_t(first)]);
  } else {
    operands_.emplace_back(desc, library_.engine);
    std::memset(operands_.back().get_data_handle(), 0, desc.get_size());  // Blocks' padding, too.
  }
  return operands_.back();
}

dnnl::memory Kernel::AddOutput(const Desc& desc) {
  output_ = dnnl::memory(desc, library_.engine);
  return output_;
}

void Kernel::Do(dnnl::primitive primitive, std::unordered_map<int, dnnl::memory> arguments) {
  steps_.emplace_back([primitive = std::move(primitive), arguments = std::move(arguments),
                       stream = library_.stream]() mutable {
    primitive.execute(stream, arguments);
    stream.wait();
  });
}

void Kernel::Run() const {
  for (const std::function<void()>& step : steps_) step();
}

void Kernel::SetOperand(int k, std::span<const float> elements) {
  const dnnl::memory& to = operands_[std::size_t(k)];
  dnnl::memory from(Plain(to.get_desc().dims()), library_.engine);
  CHECK(from.get_desc().get_size() == elements.size_bytes());
  std::memcpy(from.get_data_handle(), elements.data(), elements.size_bytes());
  Reorder(library_, from, to);
}

std::vector<float> Kernel::Output() const {
  dnnl::memory to(Plain(output_.get_desc().dims()), library_.engine);
  Reorder(library_, output_, to);
  const float* first = Elements(to);
  return {first, first + to.get_desc().get_size() / sizeof(float)};
}

// The library runs on the OpenMP runtime that it was built with, whichever that is.
void SetThreads(int threads) {
  using Function = void (*)(int);
  const auto set = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(threads);
}

std::unique_ptr<Kernel> MakeKernel(const Library& library, const Operation& operation) {
  if (BytesOf(operation) > kBytesMax) return nullptr;
  try {
    auto kernel = std::make_unique<Kernel>(library, operation);
    if (!Make(*kernel)) return nullptr;
    CHECK(kernel->operands().size() == operation.operands.size());
    for (int k = 0; k < int(operation.operands.size()); ++k) {
      std::vector<float> numbers(std::size_t(graph::ElementCount(kernel->operand(k).extents)));
      FillWithNumbers(numbers);
      kernel->SetOperand(k, numbers);
    }
    return kernel;
  } catch (const dnnl::error&) {  // Not in this form, or no memory.
    return nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Dims DimsOf(const graph::Extents& extents) {
  Dims dims(extents.begin(), extents.end());
  if (dims.empty()) dims.push_back(1);
  return dims;
}

Dims RowMajor(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t a = dims.size(); a-- > 1;) strides[a - 1] = strides[a] * dims[a];
  return strides;
}

Desc Plain(const Dims& dims) { return Strided(dims, RowMajor(dims)); }

Desc Strided(const Dims& dims, const Dims& strides) {
  return Desc(dims, dnnl::memory::data_type::f32, strides);
}

Desc Any(const Dims& dims) {
  return Desc(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
}

Desc ImageLike(const Dims& dims) {
  using Tag = dnnl::memory::format_tag;
  const bool wide = (int(dnnl::get_effective_cpu_isa()) & int(dnnl::cpu_isa::avx512_core)) ==
                    int(dnnl::cpu_isa::avx512_core);
  const std::int64_t block = wide ? 16 : 8;
  if (dims.size() != 4 || dims[1] % block != 0) return Plain(dims);
  return Desc(dims, dnnl::memory::data_type::f32, wide ? Tag::nChw16c : Tag::nChw8c);
}

dnnl::memory View(const dnnl::memory& memory, const Desc& desc, std::int64_t offset) {
  return dnnl::memory(desc, memory.get_engine(), Elements(memory) + offset);
}

dnnl::algorithm AlgorithmOf(ops::Activation activation) {
  switch (activation) {
    case ops::Activation::kNone:
      break;
    case ops::Activation::kRelu:
      return dnnl::algorithm::eltwise_relu;
    case ops::Activation::kSigmoid:
      return dnnl::algorithm::eltwise_logistic;
    case ops::Activation::kTanh:
      return dnnl::algorithm::eltwise_tanh;
  }
  CHECK(false);
  return dnnl::algorithm::undef;
}

}  // namespace tenon::optimizer::cpu
