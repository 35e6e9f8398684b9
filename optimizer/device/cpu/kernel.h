// Kernel: one operation, prepared to be run again and again on tensors of its own.
//
// A file a family: each makes the kernels of its operators. The wall around oneDNN is this folder:
// version 2.6 of it, whose operation descriptors went with version 3, and its exceptions, which
// MakeKernel catches.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "optimizer/device/operation.h"

namespace tenon::optimizer::cpu {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

// The library's engine and its queue. Thread-compatible.
struct Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

// Thread-compatible; the library outlives it.
class Kernel {
 public:
  Kernel(const Library& library, const Operation& operation);

  // Operand k as the kernel wants it, in memory of its own. `desc` has the elements of operand k in
  // its order; one that names the tensor of an operand before, and lies like it, shares its memory.
  dnnl::memory AddOperand(const Desc& desc);
  // Likewise the output; or a memory that is there already (in-place sums).
  dnnl::memory AddOutput(const Desc& desc);
  void SetOutput(const dnnl::memory& memory) { output_ = memory; }
  // Operand number `next` is in `memory`, too.
  void ShareOperand(const dnnl::memory& memory) { operands_.push_back(memory); }

  // Appends a step of a run.
  void Do(dnnl::primitive primitive, std::unordered_map<int, dnnl::memory> arguments);
  void Do(std::function<void()> step) { steps_.push_back(std::move(step)); }

  void Run() const;

  // Row-major elements in, and out.
  void SetOperand(int k, std::span<const float> elements);
  std::vector<float> Output() const;

  const Library& library() const { return library_; }
  const Operation& operation() const { return operation_; }
  const std::vector<dnnl::memory>& operands() const { return operands_; }
  const dnnl::memory& output() const { return output_; }
  const Operand& operand(int k) const { return operation_.operands[std::size_t(k)]; }

 private:
  const Library& library_;
  const Operation operation_;
  std::vector<dnnl::memory> operands_;
  dnnl::memory output_;
  std::vector<std::function<void()>> steps_;
};

// How many threads the kernels that this thread runs take.
void SetThreads(int threads);

// Nothing: there is no kernel for it, or no memory. The tensors hold numbers of both signs, none of
// them 0.
std::unique_ptr<Kernel> MakeKernel(const Library& library, const Operation& operation);

// ---- For the families ----

// False: not for this operator, or not in this form. May throw dnnl::error and std::bad_alloc.
bool MakeConvolution(Kernel& kernel);    // convolution.cc: Conv
bool MakeProduct(Kernel& kernel);        // product.cc: MatMul
bool MakePooling(Kernel& kernel);        // pooling.cc: AveragePool, MaxPool, GlobalAveragePool
bool MakePointwise(Kernel& kernel);      // pointwise.cc: of one operand or two; Clip
bool MakeReduction(Kernel& kernel);      // reduction.cc: ReduceSum, ReduceMean, ReduceMax
bool MakeNormalization(Kernel& kernel);  // normalization.cc: Softmax, Batch-, Layer-, RMS-
bool MakeMovement(Kernel& kernel);  // movement.cc: Transpose, Concat, Split, Slice, Pad, Enlarge

// Extents as dims; a scalar is a tensor of one axis.
Dims DimsOf(const graph::Extents& extents);
// Row-major.
Desc Plain(const Dims& dims);
// Of strides in elements.
Desc Strided(const Dims& dims, const Dims& strides);
Dims RowMajor(const Dims& dims);
// How an image [N, C, H, W] lies between convolutions: channels in blocks where they fill blocks,
// which is how oneDNN's convolutions leave it. Other tensors: row-major.
Desc ImageLike(const Dims& dims);
// The library chooses.
Desc Any(const Dims& dims);
// The memory again, seen through another descriptor and from element `offset` on.
dnnl::memory View(const dnnl::memory& memory, const Desc& desc, std::int64_t offset = 0);

dnnl::algorithm AlgorithmOf(ops::Activation activation);  // Not for kNone.
template <class List>
Dims ConstantsOf(const List& sizes) {
  Dims out;
  for (const auto& s : sizes) out.push_back(s.constant());
  return out;
}

}  // namespace tenon::optimizer::cpu
