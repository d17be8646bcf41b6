// Property returns: the plain duties of a call. Judged first, so that the run it makes is the first one of the trial and
// the inputs can be compared with what they were before any run. A crash, a hang, a launch error or an allocation that
// cannot be met is seen by the campaign while this law runs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "properties/support.h"

namespace attest {
namespace {

struct Operand {
  const char* name;
  at::Tensor tensor;
};

std::vector<Operand> operands(const Inputs& in) {
  std::vector<Operand> all;
  for (const Operand& o : {Operand{"q", in.q}, Operand{"k", in.k}, Operand{"v", in.v}, Operand{"dout", in.dout},
                           Operand{"dlse", in.dlse}, Operand{"key_padding_mask", in.key_padding_mask}})
    if (o.tensor.defined()) all.push_back(o);
  return all;
}

/// Every byte of the storage under `t`, the bytes between the rows too; a copy on the CPU.
at::Tensor storage_bytes(const at::Tensor& t) {
  const auto size = static_cast<int64_t>(t.storage().nbytes());
  at::Tensor view = at::empty({0}, t.options().dtype(at::kByte)).set_(t.storage(), 0, {size}, {1});
  return view.to(at::kCPU, at::kByte, false, /*copy=*/true);
}

std::optional<std::string> written_to(const Operand& o, const at::Tensor& before) {
  const at::Tensor after = storage_bytes(o.tensor);
  if (std::memcmp(before.const_data_ptr(), after.const_data_ptr(), static_cast<size_t>(before.numel())) == 0) return std::nullopt;
  const int64_t byte = (*first_true(before.ne(after)))[0];
  return fmt::format("the run wrote into the memory of its input {}, first at element {} of its storage", o.name,
                     byte / o.tensor.element_size());
}

std::vector<int64_t> promised_shape(const AttentionProblem& p, Quantity q) {
  switch (q) {
    case Quantity::kOut: return {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v};
    case Quantity::kLse: return {p.batch, p.num_heads_q, p.seqlen_q};
    case Quantity::kDq: return {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim};
    case Quantity::kDk: return {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim};
    case Quantity::kDv: return {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v};
  }
  return {};
}

std::optional<std::string> wrong_form(const Inputs& in, Quantity q, const at::Tensor& t) {
  const std::string_view name = quantity_name(in.problem.op, q);
  if (!t.defined()) return fmt::format("{} was not returned", name);
  const std::vector<int64_t> shape = promised_shape(in.problem, q);
  if (t.sizes() != at::IntArrayRef(shape))
    return fmt::format("{} has shape [{}], promised [{}]", name, fmt::join(t.sizes().vec(), ","), fmt::join(shape, ","));
  const at::ScalarType type = q == Quantity::kLse ? at::kFloat : scalar_type(in.problem.dtype);
  if (t.scalar_type() != type)
    return fmt::format("{} has type {}, promised {}", name, at::toString(t.scalar_type()), at::toString(type));
  if (t.device() != in.q.device())
    return fmt::format("{} lies on {}, the inputs on {}", name, t.device().str(), in.q.device().str());
  for (const Operand& o : operands(in))
    if (t.is_alias_of(o.tensor)) return fmt::format("{} shares the memory of the input {}", name, o.name);
  return std::nullopt;
}

Verdict returns(Trial& trial) {
  const std::vector<Operand> all = operands(trial.inputs());
  std::vector<at::Tensor> before;
  for (const Operand& o : all) before.push_back(storage_bytes(o.tensor));
  const Outputs& outputs = trial.outputs();
  for (size_t i = 0; i < all.size(); ++i)
    if (auto sentence = written_to(all[i], before[i])) return incorrect(*sentence);
  for (Quantity q : trial.quantities().members())
    if (auto sentence = wrong_form(trial.inputs(), q, outputs[q])) return incorrect(*sentence);
  return pass();
}

const Register<Property> registered({
    .name = "returns",
    .law = "A run comes back, with outputs of the promised shapes, types and device that share no memory with the inputs, "
           "and leaves every bit of the inputs as it was.",
    .domain = {.sequences = EnumSet<Sequences>::all()},
    .faulty = "faulty.softmax.segfault",
    .check = returns,
});

}  // namespace
}  // namespace attest
