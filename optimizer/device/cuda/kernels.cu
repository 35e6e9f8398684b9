// Kernels of our own: for what the libraries have none, and where the work is to move elements.
#include <cfloat>

#include "optimizer/device/cuda/gpu.h"

namespace tenon::optimizer::cuda {
namespace {

constexpr int kThreads = 256;

bool Queued() { return cudaGetLastError() == cudaSuccess; }

int64_t Count(const TenonMap& map) {
  int64_t count = 1;
  for (int a = 0; a < map.rank; ++a) count *= map.extents[a];
  return count;
}

// Blocks for `count` threads; a grid of more is walked in strides.
unsigned Blocks(int64_t count) {
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  return unsigned(blocks < 1 ? 1 : blocks > 1 << 20 ? 1 << 20 : blocks);
}

__device__ float Sigmoid(float x) { return 1 / (1 + expf(-x)); }

__device__ float Apply(int function, float alpha, const float* x) {
  switch (TenonFunction(function)) {
    case kTenonCopy:
      return x[0];
    case kTenonNeg:
      return -x[0];
    case kTenonRelu:
      return fmaxf(x[0], 0);
    case kTenonSigmoid:
      return Sigmoid(x[0]);
    case kTenonTanh:
      return tanhf(x[0]);
    case kTenonExp:
      return expf(x[0]);
    case kTenonReciprocal:
      return 1 / x[0];
    case kTenonSqrt:
      return sqrtf(x[0]);
    case kTenonErf:
      return erff(x[0]);
    case kTenonLeakyRelu:
      return x[0] > 0 ? x[0] : alpha * x[0];
    case kTenonSilu:
      return x[0] * Sigmoid(x[0]);
    case kTenonGelu:
      return x[0] / 2 * (1 + erff(x[0] * 0.70710678f));
    case kTenonGeluTanh:
      return x[0] / 2 * (1 + tanhf(0.79788456f * (x[0] + 0.044715f * x[0] * x[0] * x[0])));
    case kTenonAdd:
      return x[0] + x[1];
    case kTenonSub:
      return x[0] - x[1];
    case kTenonMul:
      return x[0] * x[1];
    case kTenonDiv:
      return x[0] / x[1];
    case kTenonMax:
      return fmaxf(x[0], x[1]);
    case kTenonMin:
      return fminf(x[0], x[1]);
    case kTenonClip:
      return fminf(fmaxf(x[0], x[1]), x[2]);
    case kTenonBatchNormalize:
      return (x[0] - x[3]) * rsqrtf(x[4] + alpha) * x[1] + x[2];
  }
  return 0;
}

struct Pointers {
  const float* at[kTenonOperands];
};

__global__ void Map(TenonMap map, int64_t count, Pointers from, float* to) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count;
       i += int64_t(gridDim.x) * blockDim.x) {
    int64_t at[kTenonOperands], out = map.to_offset, rest = i;
    for (int k = 0; k < map.operands; ++k) at[k] = map.offset[k];
    for (int a = map.rank - 1; a >= 0; --a) {
      const int64_t position = rest % map.extents[a];
      rest /= map.extents[a];
      out += position * map.to_strides[a];
      for (int k = 0; k < map.operands; ++k) at[k] += position * map.strides[k][a];
    }
    float x[kTenonOperands];
    for (int k = 0; k < map.operands; ++k) x[k] = from.at[k][at[k]];
    to[out] = Apply(map.function, float(map.alpha), x);
  }
}

// The sum or maximum over the block's threads, for all of them.
__device__ float Together(float value, bool maximum) {
  __shared__ float all[kThreads];
  all[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const float other = all[threadIdx.x + half];
      all[threadIdx.x] = maximum ? fmaxf(all[threadIdx.x], other) : all[threadIdx.x] + other;
    }
    __syncthreads();
  }
  const float result = all[0];
  __syncthreads();
  return result;
}

// A block a row.
__global__ void Rows(TenonRows rows, const float* x, const float* scale, const float* bias,
                     float* y) {
  for (int64_t row = blockIdx.x; row < rows.outer * rows.inner; row += gridDim.x) {
    const int64_t first = row / rows.inner * rows.width * rows.inner + row % rows.inner;
    const auto at = [&](int64_t k) { return x[first + k * rows.inner]; };
    float sum = 0, squares = 0, maximum = -FLT_MAX;
    for (int64_t k = threadIdx.x; k < rows.width; k += blockDim.x) {
      sum += at(k);
      maximum = fmaxf(maximum, at(k));
    }
    const auto write = [&](auto&& value) {
      for (int64_t k = threadIdx.x; k < rows.width; k += blockDim.x) {
        y[first + k * rows.inner] = value(k);
      }
    };
    if (rows.fold == kTenonSum || rows.fold == kTenonMean || rows.fold == kTenonMaximum) {
      const float all =
          Together(rows.fold == kTenonMaximum ? maximum : sum, rows.fold == kTenonMaximum);
      if (threadIdx.x == 0) y[row] = rows.fold == kTenonMean ? all / float(rows.width) : all;
    } else if (rows.fold == kTenonSoftmax) {
      const float top = Together(maximum, true);
      float total = 0;
      for (int64_t k = threadIdx.x; k < rows.width; k += blockDim.x) total += expf(at(k) - top);
      total = Together(total, false);
      write([&](int64_t k) { return expf(at(k) - top) / total; });
    } else {
      const float mean = rows.fold == kTenonLayer ? Together(sum, false) / float(rows.width) : 0;
      for (int64_t k = threadIdx.x; k < rows.width; k += blockDim.x) {
        squares += (at(k) - mean) * (at(k) - mean);
      }
      const float variance = Together(squares, false) / float(rows.width);
      const float factor = rsqrtf(variance + float(rows.epsilon));
      write([&](int64_t k) {
        return (at(k) - mean) * factor * scale[k] + (rows.bias != 0 ? bias[k] : 0);
      });
    }
  }
}

__global__ void Pool(TenonPool pool, int64_t count, const float* x, float* y) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count;
       i += int64_t(gridDim.x) * blockDim.x) {
    const int64_t column = i % pool.out[1], row = i / pool.out[1] % pool.out[0];
    const float* image = x + i / (pool.out[0] * pool.out[1]) * pool.in[0] * pool.in[1];
    float sum = 0, maximum = -FLT_MAX;
    int64_t inside = 0;
    for (int64_t r = 0; r < pool.kernel[0]; ++r) {
      for (int64_t s = 0; s < pool.kernel[1]; ++s) {
        const int64_t h = row * pool.strides[0] + r - pool.pads[0];
        const int64_t w = column * pool.strides[1] + s - pool.pads[1];
        if (h < 0 || h >= pool.in[0] || w < 0 || w >= pool.in[1]) continue;
        const float value = image[h * pool.in[1] + w];
        sum += value;
        maximum = fmaxf(maximum, value);
        ++inside;
      }
    }
    const int64_t all = pool.kernel[0] * pool.kernel[1];
    y[i] = pool.kind == kTenonPoolMax
               ? maximum
               : sum / float(pool.kind == kTenonPoolIncluding ? all : inside);
  }
}

}  // namespace

Launch MakeMap(TenonCuda& cuda, const TenonMap& map) {
  return [&cuda, map](const std::vector<float*>& operands, float* output) {
    Pointers from{};
    for (int k = 0; k < map.operands; ++k) from.at[k] = operands[size_t(map.operand[k])];
    const int64_t count = Count(map);
    Map<<<Blocks(count), kThreads, 0, cuda.stream>>>(map, count, from, output);
    return Queued();
  };
}

Launch MakeRows(TenonCuda& cuda, const TenonRows& rows) {
  return [&cuda, rows](const std::vector<float*>& operands, float* output) {
    const int64_t count = rows.outer * rows.inner;
    const float* scale = operands.size() > 1 ? operands[1] : nullptr;
    const float* bias = rows.bias != 0 ? operands[2] : nullptr;
    Rows<<<unsigned(count < 1 << 20 ? count : 1 << 20), kThreads, 0, cuda.stream>>>(
        rows, operands[0], scale, bias, output);
    return Queued();
  };
}

Launch MakePool(TenonCuda& cuda, const TenonPool& pool) {
  return [&cuda, pool](const std::vector<float*>& operands, float* output) {
    const int64_t count = pool.images * pool.out[0] * pool.out[1];
    Pool<<<Blocks(count), kThreads, 0, cuda.stream>>>(pool, count, operands[0], output);
    return Queued();
  };
}

}  // namespace tenon::optimizer::cuda
