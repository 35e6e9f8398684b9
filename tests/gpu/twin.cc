// The twin of the CUDA module: the same functions (optimizer/device/cuda/abi.h) in plain loops on
// the CPU, so that plans, the border and the meter are tested where there is no GPU. The module on
// a GPU and this one must compute the same.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "optimizer/device/cuda/abi.h"

struct TenonCuda {};

struct TenonCudaKernel {
  std::vector<TenonStep> steps;
  std::vector<std::vector<float>> operands;
  std::vector<int> at;  // Operand k is operands[at[k]].
  std::vector<float> output;
};

namespace {

using Kernel = TenonCudaKernel;

const float* Operand(const Kernel& kernel, int k) {
  return kernel.operands[std::size_t(kernel.at[std::size_t(k)])].data();
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double Apply(int function, double alpha, const double* x) {
  switch (TenonFunction(function)) {
    case kTenonCopy:
      return x[0];
    case kTenonNeg:
      return -x[0];
    case kTenonRelu:
      return std::max(x[0], 0.0);
    case kTenonSigmoid:
      return Sigmoid(x[0]);
    case kTenonTanh:
      return std::tanh(x[0]);
    case kTenonExp:
      return std::exp(x[0]);
    case kTenonReciprocal:
      return 1 / x[0];
    case kTenonSqrt:
      return std::sqrt(x[0]);
    case kTenonErf:
      return std::erf(x[0]);
    case kTenonLeakyRelu:
      return x[0] > 0 ? x[0] : alpha * x[0];
    case kTenonSilu:
      return x[0] * Sigmoid(x[0]);
    case kTenonGelu:
      return x[0] / 2 * (1 + std::erf(x[0] / std::sqrt(2.0)));
    case kTenonGeluTanh:
      return x[0] / 2 *
             (1 + std::tanh(std::sqrt(2 / M_PI) * (x[0] + 0.044715 * std::pow(x[0], 3))));
    case kTenonAdd:
      return x[0] + x[1];
    case kTenonSub:
      return x[0] - x[1];
    case kTenonMul:
      return x[0] * x[1];
    case kTenonDiv:
      return x[0] / x[1];
    case kTenonMax:
      return std::max(x[0], x[1]);
    case kTenonMin:
      return std::min(x[0], x[1]);
    case kTenonClip:
      return std::min(std::max(x[0], x[1]), x[2]);
    case kTenonBatchNormalize:
      return (x[0] - x[3]) / std::sqrt(x[4] + alpha) * x[1] + x[2];
  }
  return NAN;
}

void RunMap(const TenonMap& map, Kernel& kernel) {
  std::int64_t count = 1;
  for (int a = 0; a < map.rank; ++a) count *= map.extents[a];
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t out = map.to_offset, rest = i;
    std::vector<std::int64_t> at(map.offset, map.offset + map.operands);
    for (int a = map.rank - 1; a >= 0; --a) {
      const std::int64_t position = rest % map.extents[a];
      rest /= map.extents[a];
      out += position * map.to_strides[a];
      for (int k = 0; k < map.operands; ++k) at[std::size_t(k)] += position * map.strides[k][a];
    }
    double x[kTenonOperands] = {};
    for (int k = 0; k < map.operands; ++k) {
      x[k] = double(Operand(kernel, map.operand[k])[at[std::size_t(k)]]);
    }
    kernel.output[std::size_t(out)] = float(Apply(map.function, map.alpha, x));
  }
}

void RunRow(const TenonRows& rows, std::int64_t outer, std::int64_t inner, Kernel& kernel) {
  const auto position = [&](std::int64_t k) {
    return std::size_t((outer * rows.width + k) * rows.inner + inner);
  };
  const auto x = [&](std::int64_t k) { return double(Operand(kernel, 0)[position(k)]); };
  const auto sum = [&](auto&& term) {
    double all = 0;
    for (std::int64_t k = 0; k < rows.width; ++k) all += term(k);
    return all;
  };
  double maximum = x(0);
  for (std::int64_t k = 1; k < rows.width; ++k) maximum = std::max(maximum, x(k));
  const double total = sum(x);
  float& one = kernel.output[std::size_t(outer * rows.inner + inner)];
  if (rows.fold == kTenonSum) one = float(total);
  if (rows.fold == kTenonMean) one = float(total / double(rows.width));
  if (rows.fold == kTenonMaximum) one = float(maximum);
  if (rows.fold < kTenonSoftmax) return;
  const double all = sum([&](std::int64_t k) { return std::exp(x(k) - maximum); });
  const double mean = rows.fold == kTenonLayer ? total / double(rows.width) : 0;
  const double squares = sum([&](std::int64_t k) { return (x(k) - mean) * (x(k) - mean); });
  const double deviation = std::sqrt(squares / double(rows.width) + rows.epsilon);
  for (std::int64_t k = 0; k < rows.width; ++k) {
    const double bias = rows.bias != 0 ? double(Operand(kernel, 2)[k]) : 0;
    kernel.output[position(k)] =
        rows.fold == kTenonSoftmax
            ? float(std::exp(x(k) - maximum) / all)
            : float((x(k) - mean) / deviation * double(Operand(kernel, 1)[k]) + bias);
  }
}

void RunRows(const TenonRows& rows, Kernel& kernel) {
  for (std::int64_t outer = 0; outer < rows.outer; ++outer) {
    for (std::int64_t inner = 0; inner < rows.inner; ++inner) RunRow(rows, outer, inner, kernel);
  }
}

void RunPool(const TenonPool& p, Kernel& kernel) {
  const float* x = Operand(kernel, 0);
  for (std::size_t i = 0; i < kernel.output.size(); ++i) {
    const auto n = std::int64_t(i);
    const std::int64_t column = n % p.out[1], row = n / p.out[1] % p.out[0];
    const std::int64_t image = n / (p.out[0] * p.out[1]) * p.in[0] * p.in[1];
    double sum = 0, maximum = -INFINITY;
    std::int64_t inside = 0;
    for (std::int64_t k = 0; k < p.kernel[0] * p.kernel[1]; ++k) {
      const std::int64_t h = row * p.strides[0] + k / p.kernel[1] - p.pads[0];
      const std::int64_t w = column * p.strides[1] + k % p.kernel[1] - p.pads[1];
      if (h < 0 || h >= p.in[0] || w < 0 || w >= p.in[1]) continue;
      const double value = double(x[image + h * p.in[1] + w]);
      sum += value;
      maximum = std::max(maximum, value);
      ++inside;
    }
    const std::int64_t of = p.kind == kTenonPoolIncluding ? p.kernel[0] * p.kernel[1] : inside;
    kernel.output[i] = float(p.kind == kTenonPoolMax ? maximum : sum / double(of));
  }
}

void RunProduct(const TenonProduct& p, Kernel& kernel) {
  for (std::int64_t i = 0; i < p.batch * p.m * p.n; ++i) {
    const std::int64_t batch = i / (p.m * p.n), row = i / p.n % p.m, column = i % p.n;
    const float* a = Operand(kernel, 0) + batch * p.stride_a + row * p.k;
    const float* b = Operand(kernel, 1) + batch * p.stride_b + column;
    double sum = 0;
    for (std::int64_t k = 0; k < p.k; ++k) sum += double(a[k]) * double(b[k * p.n]);
    kernel.output[std::size_t(i)] = float(sum);
  }
}

// One element of the product, before bias, residual and activation.
double Convolve(const TenonConvolution& c, const Kernel& kernel, std::int64_t n, std::int64_t f,
                std::int64_t row, std::int64_t column) {
  const std::int64_t channels = c.c / c.group, first = f / (c.f / c.group) * channels;
  double sum = 0;
  for (std::int64_t k = 0; k < channels * c.kernel[0] * c.kernel[1]; ++k) {
    const std::int64_t s = k % c.kernel[1], r = k / c.kernel[1] % c.kernel[0];
    const std::int64_t channel = k / (c.kernel[0] * c.kernel[1]);
    const std::int64_t h = row * c.strides[0] + r * c.dilations[0] - c.before[0];
    const std::int64_t w = column * c.strides[1] + s * c.dilations[1] - c.before[1];
    if (h < 0 || h >= c.in[0] || w < 0 || w >= c.in[1]) continue;
    const std::int64_t at = ((n * c.c + first + channel) * c.in[0] + h) * c.in[1] + w;
    sum += double(Operand(kernel, 0)[at]) *
           double(Operand(kernel, 1)[f * channels * c.kernel[0] * c.kernel[1] + k]);
  }
  return sum;
}

void RunConvolution(const TenonConvolution& c, Kernel& kernel) {
  for (std::size_t i = 0; i < kernel.output.size(); ++i) {
    const auto at = std::int64_t(i);
    const std::int64_t column = at % c.out[1], row = at / c.out[1] % c.out[0];
    const std::int64_t f = at / (c.out[0] * c.out[1]) % c.f;
    double x = Convolve(c, kernel, at / (c.out[0] * c.out[1] * c.f), f, row, column);
    if (c.bias != 0) x += double(Operand(kernel, 2)[f]);
    if (c.residual != 0) x += double(Operand(kernel, int(kernel.at.size()) - 1)[at]);
    if (c.activation == kTenonActRelu) x = std::max(x, 0.0);
    if (c.activation == kTenonActSigmoid) x = Sigmoid(x);
    if (c.activation == kTenonActTanh) x = std::tanh(x);
    kernel.output[i] = float(x);
  }
}

void Run(Kernel& kernel) {
  for (const TenonStep& step : kernel.steps) {
    switch (TenonStepKind(step.kind)) {
      case kTenonStepClear:
        std::fill(kernel.output.begin(), kernel.output.end(), 0.f);
        break;
      case kTenonStepMap:
        RunMap(step.map, kernel);
        break;
      case kTenonStepRows:
        RunRows(step.rows, kernel);
        break;
      case kTenonStepPool:
        RunPool(step.pool, kernel);
        break;
      case kTenonStepProduct:
        RunProduct(step.product, kernel);
        break;
      case kTenonStepConvolution:
        RunConvolution(step.convolution, kernel);
        break;
    }
  }
}

int Open(TenonCuda** cuda, char*, std::int32_t) {
  *cuda = new TenonCuda();
  return 0;
}
void Close(TenonCuda* cuda) { delete cuda; }
const char* Identity(const TenonCuda*) { return "twin"; }

int Prepare(TenonCuda*, const TenonStep* steps, std::int32_t count, const TenonTensors* tensors,
            TenonCudaKernel** out) {
  auto* kernel = new Kernel();
  kernel->steps.assign(steps, steps + count);
  for (std::int32_t k = 0; k < tensors->operands; ++k) {
    kernel->at.push_back(tensors->same_as[k] >= 0 ? tensors->same_as[k] : k);
    kernel->operands.emplace_back(std::size_t(tensors->operand_elements[k]));
  }
  // What no step writes shows.
  kernel->output.assign(std::size_t(tensors->output_elements), NAN);
  *out = kernel;
  return 0;
}
void Discard(Kernel* kernel) { delete kernel; }

int SetOperand(Kernel* kernel, std::int32_t k, const float* elements) {
  std::vector<float>& to = kernel->operands[std::size_t(kernel->at[std::size_t(k)])];
  std::copy_n(elements, to.size(), to.begin());
  return 0;
}
int GetOutput(Kernel* kernel, float* elements) {
  std::copy(kernel->output.begin(), kernel->output.end(), elements);
  return 0;
}
int Time(Kernel* kernel, std::int32_t runs, std::int32_t, double* us) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int32_t k = 0; k < runs; ++k) Run(*kernel);
  *us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const TenonCudaFunctions tenon_cuda_functions = {
    kTenonCudaAbi, Open, Close, Identity, Prepare, Discard, SetOperand, GetOutput, Time,
};
