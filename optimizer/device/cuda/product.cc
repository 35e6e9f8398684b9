// Products by cuBLASLt: of its heuristics' algorithms, the fastest. The library counts columns
// first, so the row-major a * b is its b * a.
#include "optimizer/device/cuda/gpu.h"

namespace tenon::optimizer::cuda {
namespace {

constexpr int kAlgorithmsMax = 8;

template <class T, cublasStatus_t (*kDestroy)(T)>
struct Destroyer {
  using pointer = T;
  void operator()(T t) const { kDestroy(t); }
};
using Layout =
    std::unique_ptr<void, Destroyer<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>>;
using Desc = std::unique_ptr<void, Destroyer<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>>;
using Preference =
    std::unique_ptr<void, Destroyer<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>>;

bool Well(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; }

// [rows, columns] row-major is [columns, rows] to the library.
Layout MakeLayout(int64_t rows, int64_t columns, int64_t batch, int64_t stride) {
  cublasLtMatrixLayout_t raw = nullptr;
  if (!Well(cublasLtMatrixLayoutCreate(&raw, CUDA_R_32F, uint64_t(columns), uint64_t(rows),
                                       columns))) {
    return nullptr;
  }
  Layout layout(raw);
  const auto count = int32_t(batch);
  const bool well = Well(cublasLtMatrixLayoutSetAttribute(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                          &count, sizeof count)) &&
                    Well(cublasLtMatrixLayoutSetAttribute(
                        raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  return well ? std::move(layout) : nullptr;
}

// What all algorithms of one product share.
struct Product {
  Desc desc;
  Layout a, b, c;
};

std::shared_ptr<Product> Describe(const TenonProduct& p) {
  auto out = std::make_shared<Product>();
  cublasLtMatmulDesc_t raw = nullptr;
  if (!Well(cublasLtMatmulDescCreate(&raw, CUBLAS_COMPUTE_32F, CUDA_R_32F))) return nullptr;
  out->desc.reset(raw);
  out->a = MakeLayout(p.m, p.k, p.batch, p.stride_a);
  out->b = MakeLayout(p.k, p.n, p.batch, p.stride_b);
  out->c = MakeLayout(p.m, p.n, p.batch, p.m * p.n);
  return out->a && out->b && out->c ? out : nullptr;
}

std::vector<cublasLtMatmulHeuristicResult_t> Algorithms(const TenonCuda& cuda, const Product& p) {
  cublasLtMatmulPreference_t raw = nullptr;
  if (!Well(cublasLtMatmulPreferenceCreate(&raw))) return {};
  const Preference preference(raw);
  const size_t bytes = kWorkspaceBytes;
  if (!Well(cublasLtMatmulPreferenceSetAttribute(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                 &bytes, sizeof bytes))) {
    return {};
  }
  std::vector<cublasLtMatmulHeuristicResult_t> found(kAlgorithmsMax);
  int count = 0;
  if (!Well(cublasLtMatmulAlgoGetHeuristic(cuda.blas, p.desc.get(), p.b.get(), p.a.get(), p.c.get(),
                                           p.c.get(), raw, kAlgorithmsMax, found.data(), &count))) {
    count = 0;
  }
  found.resize(size_t(count));
  return found;
}

}  // namespace

Launch MakeProduct(TenonCuda& cuda, const TenonProduct& p) {
  const std::shared_ptr<Product> product = Describe(p);
  if (product == nullptr) return {};
  std::vector<Launch> ways;
  for (const cublasLtMatmulHeuristicResult_t& found : Algorithms(cuda, *product)) {
    if (!Well(found.state)) continue;
    ways.push_back([&cuda, product, algorithm = found.algo](const std::vector<float*>& operands,
                                                            float* output) {
      const float one = 1, zero = 0;
      return Well(cublasLtMatmul(cuda.blas, product->desc.get(), &one, operands[1],
                                 product->b.get(), operands[0], product->a.get(), &zero, output,
                                 product->c.get(), output, product->c.get(), &algorithm,
                                 cuda.workspace, kWorkspaceBytes, cuda.stream));
    });
  }
  const auto elements = [&](int64_t stride, int64_t size) {
    return size_t(stride == 0 ? size : stride * p.batch);
  };
  return Fastest(cuda, ways, {elements(p.stride_a, p.m * p.k), elements(p.stride_b, p.k * p.n)},
                 size_t(p.batch * p.m * p.n));
}

}  // namespace tenon::optimizer::cuda
