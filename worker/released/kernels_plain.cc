// The kernels for any machine.
#define TENON_KERNELS kPlainKernels
#define TENON_KERNELS_NAME "plain"
#define TENON_VECTOR_BYTES 16
#include "worker/released/kernels.inc"
