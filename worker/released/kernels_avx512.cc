// The kernels for machines with AVX512.
#define TENON_KERNELS kAvx512Kernels
#define TENON_KERNELS_NAME "avx512"
#define TENON_VECTOR_BYTES 64
#include "worker/released/kernels.inc"
