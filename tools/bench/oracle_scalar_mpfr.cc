#ifdef ATTEST_HAS_MPFR
#include <boost/multiprecision/mpfr.hpp>
#endif

#include "tools/bench/oracle_scalar.h"
#include "tools/bench/oracle_scalar_rows.h"

namespace attest::bench {

#ifdef ATTEST_HAS_MPFR
std::optional<double> seconds_in_mpfr_float_50(const GroupProblem& problem, const std::vector<int64_t>& rows) {
  namespace mp = boost::multiprecision;
  return ScalarRows<mp::number<mp::mpfr_float_backend<50>, mp::et_off>>(problem).seconds(rows);
}
#else
std::optional<double> seconds_in_mpfr_float_50(const GroupProblem&, const std::vector<int64_t>&) { return std::nullopt; }
#endif

}  // namespace attest::bench
