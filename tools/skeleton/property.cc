// NAME.forward: copy this file to properties/, rename, put your law in; every variant is then tested against it.
// What it is: v twice as large makes out twice as large.
// What is unusual: it needs no oracle; doubling is exact, so not one bit may differ.
// What it promises: nothing where numbers go subnormal or overflow: fp16 and some fills are outside its domain.
#include "harness/property.h"

#include "harness/tensors.h"

namespace attest {
namespace {

Verdict check(Trial& trial) {
  Inputs doubled = trial.inputs().forward_only();
  doubled.v = doubled.v * 2;
  const at::Tensor actual = trial.run(doubled).out;
  const at::Tensor expected = trial.outputs().out * 2;
  if (expected.count_nonzero().item<int64_t>() == 0) return vacuous("out is zero everywhere");
  Comparison comparison = compare_bitwise(actual, expected);
  comparison.quantity = "out";
  return judge({comparison}, "v doubled");
}

const Register<Property> registered{{
    .name = "NAME.forward",
    .law = "Doubling v doubles out, in every bit.",
    .domain = {.dtypes = {Dtype::kBFloat16, Dtype::kFloat32},
               .logits = {LogitFill::kNormal, LogitFill::kEqual},
               .values = {ValueFill::kNormal, ValueFill::kConstant}},
    .judges = {Quantity::kOut},
    .faulty = "faulty.softmax.NAME",  // a seeded defect in kernels/faulty/ that this law catches
    .check = check,
}};

}  // namespace
}  // namespace attest
