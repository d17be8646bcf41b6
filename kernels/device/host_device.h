// Marks code that both compilers read: nvcc for the device, and any C++ compiler for the host twins and the tests.
#pragma once

#ifdef __CUDACC__
#define ATTEST_HOST_DEVICE __host__ __device__
#else
#define ATTEST_HOST_DEVICE
#endif
