// Defect: a kernel that writes outside every allocation (cuda_out_of_bounds.cu). The process that ran it is lost; the campaign
// is not. Smallest case: any.
#include <c10/core/impl/VirtualGuardImpl.h>

#include "harness/error.h"
#include "kernels/faulty/naive.h"
#include "kernels/faulty/out_of_bounds.h"

namespace attest::faulty {
namespace {

Outputs run(const Inputs& in) {
  c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  at::Tensor buffer = at::empty({256}, in.q.options().dtype(at::kFloat));
  const char* error = launch_out_of_bounds(buffer.data_ptr<float>(), guard.getStream(in.q.device()).native_handle());
  if (error != nullptr) throw LaunchError(std::string("write_outside: ") + error);
  return {at::zeros({in.problem.batch, in.problem.num_heads_q, in.problem.seqlen_q, in.problem.head_dim_v}, in.q.options()),
          {},
          {},
          {},
          {}};
}

KernelVariant record() {
  KernelVariant variant =
      faulty_variant("faulty.softmax.cuda_out_of_bounds", Op::kSoftmax, "writes outside every allocation on the GPU", "returns");
  variant.device = Device::kCuda;
  variant.produces = {Quantity::kOut};
  variant.run = run;
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
