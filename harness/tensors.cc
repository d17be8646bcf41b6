#include "harness/tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <limits>
#include <map>
#include <vector>

#include "harness/error.h"

namespace attest {
namespace {

std::atomic<bool> g_poison_fresh{true};

std::string shape_text(at::IntArrayRef sizes) { return fmt::format("[{}]", fmt::join(sizes.begin(), sizes.end(), ", ")); }

struct Expected {
  const char* name;
  const at::Tensor& tensor;
  std::vector<int64_t> sizes;
  at::ScalarType type;
  bool required;
};

std::optional<std::string> contradiction(const Expected& e, at::Device device) {
  if (!e.tensor.defined()) return e.required ? std::optional<std::string>(fmt::format("{} is missing", e.name)) : std::nullopt;
  if (e.tensor.sizes() != at::IntArrayRef(e.sizes))
    return fmt::format("{} has shape {}, the problem says {}", e.name, shape_text(e.tensor.sizes()), shape_text(e.sizes));
  if (e.tensor.scalar_type() != e.type)
    return fmt::format("{} has type {}, expected {}", e.name, at::toString(e.tensor.scalar_type()), at::toString(e.type));
  if (e.tensor.device() != device) return fmt::format("{} is on {}, q is on {}", e.name, e.tensor.device().str(), device.str());
  return std::nullopt;
}

/// Copies each storage once, whole, so that offsets, strides, gap bytes and sharing between tensors survive.
class StorageMover {
 public:
  explicit StorageMover(at::Device device) : device_(device) {}

  at::Tensor operator()(const at::Tensor& t) {
    if (!t.defined()) return t;
    return at::empty({0}, t.options().device(device_)).set_(moved(t), t.storage_offset(), t.sizes(), t.strides());
  }

 private:
  at::Storage moved(const at::Tensor& t) {
    const void* key = t.storage().unsafeGetStorageImpl();
    auto found = storages_.find(key);
    if (found == storages_.end()) {
      const auto size = static_cast<int64_t>(t.storage().nbytes());
      at::Tensor bytes = at::empty({0}, t.options().dtype(at::kByte)).set_(t.storage(), 0, {size}, {1});
      found = storages_.emplace(key, bytes.to(device_, /*non_blocking=*/false, /*copy=*/true).storage()).first;
    }
    return found->second;
  }

  at::Device device_;
  std::map<const void*, at::Storage> storages_;
};

Inputs moved(const Inputs& in, at::Device target) {
  StorageMover move(target);
  Inputs out = in;
  for (at::Tensor* t : {&out.q, &out.k, &out.v, &out.dout, &out.dlse, &out.key_padding_mask}) *t = move(*t);
  return out;
}

}  // namespace

std::optional<std::string> Inputs::invalid_reason() const {
  if (auto reason = problem.invalid_reason()) return reason;
  if (!q.defined()) return "q is missing";
  const AttentionProblem& p = problem;
  const at::ScalarType type = scalar_type(p.dtype);
  const Expected all[] = {
      {"q", q, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim}, type, true},
      {"k", k, {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim}, type, true},
      {"v", v, {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v}, type, true},
      {"dout", dout, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, type, false},
      {"dlse", dlse, {p.batch, p.num_heads_q, p.seqlen_q}, at::kFloat, false},
      {"key_padding_mask", key_padding_mask, {p.batch, p.seqlen_kv}, at::kBool, false},
  };
  for (const Expected& e : all)
    if (auto reason = contradiction(e, q.device())) return reason;
  if (dlse.defined() && !dout.defined()) return "dlse is given without dout";
  return sequences_invalid(kind, sequences, p.batch, p.seqlen_q, p.seqlen_kv);
}

Inputs Inputs::to(Device device) const {
  const at::Device target = torch_device(device);
  if (q.device().type() == target.type()) return *this;
  return moved(*this, target);
}

Inputs Inputs::copy() const { return moved(*this, q.device()); }

Inputs Inputs::forward_only() const {
  Inputs copy = *this;
  copy.dout = copy.dlse = at::Tensor();
  return copy;
}

const at::Tensor& Outputs::operator[](Quantity quantity) const {
  switch (quantity) {
    case Quantity::kOut:
      return out;
    case Quantity::kLse:
      return lse;
    case Quantity::kDq:
      return dq;
    case Quantity::kDk:
      return dk;
    case Quantity::kDv:
      return dv;
  }
  throw Error("no such quantity");
}

at::Tensor& Outputs::operator[](Quantity quantity) {
  return const_cast<at::Tensor&>(static_cast<const Outputs&>(*this)[quantity]);
}

Outputs Outputs::cpu() const {
  auto move = [](const at::Tensor& t) { return t.defined() ? t.cpu() : t; };
  return {move(out), move(lse), move(dq), move(dk), move(dv)};
}

at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return at::kHalf;
    case Dtype::kBFloat16:
      return at::kBFloat16;
    case Dtype::kFloat32:
      return at::kFloat;
  }
  throw Error("no such dtype");
}

Dtype dtype_of(at::ScalarType type) {
  if (type == at::kHalf) return Dtype::kFloat16;
  if (type == at::kBFloat16) return Dtype::kBFloat16;
  if (type == at::kFloat) return Dtype::kFloat32;
  throw UsageError(fmt::format("the type {} is not supported: use fp16, bf16 or fp32", at::toString(type)));
}

at::Device torch_device(Device device) { return device == Device::kCpu ? at::Device(at::kCPU) : at::Device(at::kCUDA, 0); }

at::Tensor fresh(at::IntArrayRef sizes, at::ScalarType type, Device device) {
  at::Tensor t = at::empty(sizes, at::TensorOptions().dtype(type).device(torch_device(device)));
  if (g_poison_fresh) t.fill_(std::numeric_limits<double>::quiet_NaN());
  return t;
}

void poison_fresh(bool on) { g_poison_fresh = on; }

}  // namespace attest
