// Defects that no law can see and compute-sanitizer must: faulty.softmax.cuda_race (racecheck) and faulty.softmax.cuda_unwritten
// (initcheck). The outputs are those of softmax.cpu.fixed_order, so every law holds.
#include <c10/core/impl/VirtualGuardImpl.h>

#include "harness/error.h"
#include "kernels/faulty/naive.h"
#include "kernels/faulty/planted.h"

namespace attest::faulty {
namespace {

using Launch = const char* (*)(const at::Tensor& unwritten, at::Tensor& out, void* stream);

const char* race(const at::Tensor&, at::Tensor& out, void* stream) { return launch_race(out.data_ptr<float>(), stream); }
const char* unwritten(const at::Tensor& in, at::Tensor& out, void* stream) {
  return launch_read_unwritten(in.const_data_ptr<float>(), out.data_ptr<float>(), stream);
}

Outputs run(const Inputs& in, Launch launch) {
  const auto options = in.q.options().dtype(at::kFloat);
  const at::Tensor nothing = at::empty({1 << 20}, options);
  at::Tensor thrown_away = at::empty({1}, options);
  c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  const char* error = launch(nothing, thrown_away, guard.getStream(in.q.device()).native_handle());
  if (error != nullptr) throw LaunchError(error);
  Outputs outputs = Registry<KernelVariant>::instance().find("softmax.cpu.fixed_order")->run(in.to(Device::kCpu));
  for (Quantity q : EnumSet<Quantity>::all().members())
    if (outputs[q].defined()) outputs[q] = outputs[q].to(in.q.device());
  return outputs;
}

KernelVariant record(const std::string& name, const std::string& summary, const std::string& tool, Launch launch) {
  KernelVariant variant = faulty_variant(name, Op::kSoftmax, summary, "compute-sanitizer --tool " + tool);
  variant.device = Device::kCuda;
  variant.run = [launch](const Inputs& in) { return run(in, launch); };
  return variant;
}

const Register<KernelVariant> registered_race{record("faulty.softmax.cuda_race", "a race on shared memory", "racecheck", race)};
const Register<KernelVariant> registered_unwritten{
    record("faulty.softmax.cuda_unwritten", "a read of memory that nothing wrote", "initcheck", unwritten)};

}  // namespace
}  // namespace attest::faulty
