// MatMul. A weight is packed to the library's liking beforehand; activations are row-major.
#include "optimizer/device/cpu/kernel.h"

namespace tenon::optimizer::cpu {
namespace {

// With leading axes of extent 1 up to `rank` axes.
Dims Widened(Dims dims, std::size_t rank) {
  dims.insert(dims.begin(), rank - dims.size(), 1);
  return dims;
}

}  // namespace

bool MakeProduct(Kernel& kernel) {
  const Operation& operation = kernel.operation();
  if (!std::holds_alternative<ops::MatMul>(operation.op)) return false;
  Dims a = DimsOf(kernel.operand(0).extents), b = DimsOf(kernel.operand(1).extents);
  Dims c = DimsOf(operation.output);
  if (b.size() == 2) {  // One large product instead of many small ones.
    while (a.size() > 2) {
      a[1] *= a[0];
      a.erase(a.begin());
      c[1] *= c[0];
      c.erase(c.begin());
    }
  }
  a = Widened(a, c.size());
  b = Widened(b, c.size());
  const dnnl::matmul::desc desc(Plain(a), kernel.operand(1).weight ? Any(b) : Plain(b), Plain(c));
  const dnnl::matmul::primitive_desc primitive(desc, kernel.library().engine);
  std::unordered_map<int, dnnl::memory> arguments;
  arguments[DNNL_ARG_SRC] = kernel.AddOperand(primitive.src_desc());
  arguments[DNNL_ARG_WEIGHTS] = kernel.AddOperand(primitive.weights_desc());
  arguments[DNNL_ARG_DST] = kernel.AddOutput(primitive.dst_desc());
  kernel.Do(dnnl::matmul(primitive), std::move(arguments));
  return true;
}

}  // namespace tenon::optimizer::cpu
