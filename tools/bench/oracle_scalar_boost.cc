#include <boost/multiprecision/cpp_bin_float.hpp>

#include "tools/bench/oracle_scalar.h"
#include "tools/bench/oracle_scalar_rows.h"

namespace attest::bench {

double seconds_in_cpp_bin_float_50(const GroupProblem& problem, const std::vector<int64_t>& rows) {
  namespace mp = boost::multiprecision;
  return ScalarRows<mp::number<mp::cpp_bin_float<50>, mp::et_off>>(problem).seconds(rows);
}

}  // namespace attest::bench
