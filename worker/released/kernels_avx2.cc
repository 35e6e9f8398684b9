// The kernels for machines with AVX2.
#define TENON_KERNELS kAvx2Kernels
#define TENON_KERNELS_NAME "avx2"
#define TENON_VECTOR_BYTES 32
#include "worker/released/kernels.inc"
