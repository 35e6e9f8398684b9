/* What crosses the border to the CUDA module, in C: plans of operations, and the module's
   functions.

   CUDA code is a module that is opened with dlopen when a device `cuda` is asked for, so that
   programs run where there is no CUDA, and because cuBLASLt's thread-local storage does not fit the
   small stacks of some threads. Both sides are built together; kTenonCudaAbi says whether they
   were.

   A plan is a list of steps of a few kinds, since most operators differ in numbers only: which
   elements, which function. plan.h makes plans; the module runs them on the GPU, and the twin of
   the tests (tests/gpu/twin.cc) in plain loops on the CPU. All elements are float32, all offsets
   and strides in elements. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kTenonCudaAbi = 1, kTenonRank = 8, kTenonOperands = 5 };

enum TenonFunction {
  kTenonCopy,
  kTenonNeg,
  kTenonRelu,
  kTenonSigmoid,
  kTenonTanh,
  kTenonExp,
  kTenonReciprocal,
  kTenonSqrt,
  kTenonErf,
  kTenonLeakyRelu, /* alpha: the slope below 0 */
  kTenonSilu,
  kTenonGelu,
  kTenonGeluTanh,
  kTenonAdd, /* From here on of two operands. */
  kTenonSub,
  kTenonMul,
  kTenonDiv,
  kTenonMax,
  kTenonMin,
  kTenonClip,           /* Of three: x, low, high. */
  kTenonBatchNormalize, /* Of five: x, scale, bias, mean, variance; alpha: epsilon. */
};

/* out[to_offset + sum i[a] to_strides[a]] = f(operands at offset + sum i[a] strides[a]) for all i
   below extents. An operand is its number. */
struct TenonMap {
  int32_t function, rank, operands;
  int32_t operand[kTenonOperands];
  int64_t extents[kTenonRank];
  int64_t offset[kTenonOperands], strides[kTenonOperands][kTenonRank];
  int64_t to_offset, to_strides[kTenonRank];
  double alpha;
};

enum TenonFold { kTenonSum, kTenonMean, kTenonMaximum, kTenonSoftmax, kTenonLayer, kTenonRms };

/* Operand 0 is [outer, width, inner]; each (outer, inner) is a row of its own. The first three
   folds make one element of a row, the others a row of the same width; kTenonLayer and kTenonRms
   have inner 1 and take scale [width], operand 1, and if `bias` bias [width], operand 2. */
struct TenonRows {
  int32_t fold, bias;
  int64_t outer, width, inner;
  double epsilon;
};

enum TenonPoolKind { kTenonPoolMax, kTenonPoolIncluding, kTenonPoolExcluding };

/* Axis 0 is vertical. Images without their batch: [images, height, width]. */
struct TenonPool {
  int32_t kind;
  int64_t images, in[2], out[2], kernel[2], strides[2], pads[2];
};

/* [batch, m, n] = [batch, m, k] * [batch, k, n], row-major; a batch stride of 0 repeats a matrix.
 */
struct TenonProduct {
  int64_t batch, m, n, k, stride_a, stride_b;
};

enum TenonActivation { kTenonNone, kTenonActRelu, kTenonActSigmoid, kTenonActTanh };

/* x [n, c, in], w [f, c / group, kernel], then [f] if `bias`, then like the output if `residual`.
 */
struct TenonConvolution {
  int64_t n, c, f, group, in[2], out[2], kernel[2], strides[2], dilations[2], before[2], after[2];
  int32_t bias, residual, activation;
};

enum TenonStepKind {
  kTenonStepClear, /* All of the output is 0. */
  kTenonStepMap,
  kTenonStepRows,
  kTenonStepPool,
  kTenonStepProduct,
  kTenonStepConvolution,
};

struct TenonStep {
  int32_t kind;
  union {
    struct TenonMap map;
    struct TenonRows rows;
    struct TenonPool pool;
    struct TenonProduct product;
    struct TenonConvolution convolution;
  };
};

struct TenonTensors {
  int32_t operands;
  int64_t operand_elements[64];
  int32_t same_as[64]; /* The first operand that is the same tensor, or -1. */
  int64_t output_elements;
};

struct TenonCuda;       /* The device and its libraries. */
struct TenonCudaKernel; /* A plan with tensors of its own. */

/* The functions that a module exports as `tenon_cuda_functions`. Those that return int return 0
   when all is well. One thread at a time. */
struct TenonCudaFunctions {
  int32_t abi; /* kTenonCudaAbi */
  /* On failure `error` says why, in one line. */
  int (*open)(struct TenonCuda** cuda, char* error, int32_t error_size);
  void (*close)(struct TenonCuda* cuda);
  /* Library, version, driver, device: one line of printable ASCII that lives as long as `cuda`. */
  const char* (*identity)(const struct TenonCuda* cuda);
  /* Fails when there is no kernel for a step, or no memory. Operands and output are undefined. */
  int (*prepare)(struct TenonCuda* cuda, const struct TenonStep* steps, int32_t count,
                 const struct TenonTensors* tensors, struct TenonCudaKernel** kernel);
  void (*discard)(struct TenonCudaKernel* kernel);
  int (*set_operand)(struct TenonCudaKernel* kernel, int32_t operand, const float* elements);
  int (*get_output)(struct TenonCudaKernel* kernel, float* elements);
  /* Runs it `runs` times in a row; microseconds of all of them. If `cold`, the L2 cache is flushed
     before, outside of what is timed. */
  int (*time)(struct TenonCudaKernel* kernel, int32_t runs, int32_t cold, double* us);
};

#ifdef __cplusplus
} /* extern "C" */
#endif
