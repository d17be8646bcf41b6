__global__ void attest_stub() {}
