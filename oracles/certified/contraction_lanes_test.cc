// Compiled as the lane kernels are, with FMA at hand: a compiler that contracts a·b + c breaks every error-free transform here.
#include <gtest/gtest.h>

#define ATTEST_LANES_NAMESPACE contraction
#include "oracles/certified/arithmetic.h"

namespace attest::certified::contraction {
namespace {

/// The rounding error of s = c + a·b, where the product is rounded first: what two_sum must return.
__float128 rest_of(double c, double product, double sum) { return static_cast<__float128>(c) + product - sum; }

TEST(Contraction, AProductIsRoundedBeforeItIsAdded) {
  for (int n = 1; n <= 1000; ++n) {
    const V a = all(1.0 + n * 0x1.6db6db6db6db7p-11), b = all(1.0 - n * 0x1.5555555555555p-12), c = all(n * 0x1.999999999999ap-5);
    const Two t = two_sum(c, a * b);
    volatile double factor = a[0];
    const double product = factor * b[0];
    ASSERT_TRUE(static_cast<__float128>(t.l[0]) == rest_of(c[0], product, t.h[0]))
        << "compile with -ffp-contract=off: the compiler fused a multiplication and an addition";
  }
}

}  // namespace
}  // namespace attest::certified::contraction
