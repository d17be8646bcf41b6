#include "kernels/device/attention_tensors.h"

namespace attest::fixed_order {
namespace {

template <class T>
View<T> view_of(const at::Tensor& t) {
  if (!t.defined()) return {};
  return {static_cast<T*>(t.data_ptr()), t.stride(0), t.stride(1), t.stride(2), t.dim() == 4 ? t.stride(3) : 0};
}

ElementType element_type(Dtype dtype) {
  return dtype == Dtype::kFloat16    ? ElementType::kFloat16
         : dtype == Dtype::kBFloat16 ? ElementType::kBFloat16
                                     : ElementType::kFloat32;
}

}  // namespace

Outputs fresh_outputs(const Inputs& in, Device device) {
  const AttentionProblem& p = in.problem;
  const at::ScalarType type = scalar_type(p.dtype);
  Outputs out;
  out.out = fresh({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, type, device);
  out.lse = fresh({p.batch, p.num_heads_q, p.seqlen_q}, at::kFloat, device);
  if (!in.backward()) return out;
  out.dq = fresh(in.q.sizes(), type, device);
  out.dk = fresh(in.k.sizes(), type, device);
  out.dv = fresh(in.v.sizes(), type, device);
  return out;
}

AttentionParams params_of(const Inputs& in, const Outputs& out) {
  const AttentionProblem& p = in.problem;
  AttentionParams a{.type = element_type(p.dtype),
                    .batch = p.batch,
                    .num_heads_q = p.num_heads_q,
                    .num_heads_kv = p.num_heads_kv,
                    .seqlen_q = p.seqlen_q,
                    .seqlen_kv = p.seqlen_kv,
                    .head_dim = p.head_dim,
                    .head_dim_v = p.head_dim_v,
                    .causal = p.causal,
                    .attend_current = p.op == Op::kSoftmax || p.attend_current,
                    .softmax_scale = p.softmax_scale};
  a.q = view_of<const void>(in.q);
  a.k = view_of<const void>(in.k);
  a.v = view_of<const void>(in.v);
  a.dout = view_of<const void>(in.dout);
  a.dlse = view_of<const float>(in.dlse);
  a.out = view_of<void>(out.out);
  a.lse = view_of<float>(out.lse);
  a.dq = view_of<void>(out.dq);
  a.dk = view_of<void>(out.dk);
  a.dv = view_of<void>(out.dv);
  if (in.key_padding_mask.defined()) {
    a.keep = static_cast<const uint8_t*>(in.key_padding_mask.data_ptr());
    a.keep_batch = in.key_padding_mask.stride(0);
    a.keep_key = in.key_padding_mask.stride(1);
  }
  return a;
}

std::set<std::string> every_promise() {
  std::set<std::string> names{"returns", "gradients_at_saturation", "hidden_keys_have_zero_gradient"};
  for (const char* law : {"agrees_with_oracle", "repeat_run", "batch_size", "batch_position", "batch_chunking",
                          "chunked_prefill", "prefill_decode", "kv_cache", "padding_inert", "padded_trimmed",
                          "causal_prefix", "fully_masked_rows"})
    for (const char* side : {".forward", ".gradients"}) names.insert(std::string(law) + side);
  return names;
}

std::set<std::string> every_promise_and_a_twin() {
  std::set<std::string> names = every_promise();
  names.insert({"equals_host_twin.forward", "equals_host_twin.gradients"});
  return names;
}

ToleranceContract fixed_order_contract() {
  return {.tolerance = forward_error(2.0),
          .arithmetic = {.accumulate = Arithmetic::Accumulate::kSequentialFp32},
          .reason = "Every sum is a sequential fp32 sum (or a shorter tree), weights and dz stay in fp32, exp and log are "
                    "within one ulp: the first-order bound holds with c = 1, and c = 2 leaves room for second-order terms."};
}

}  // namespace attest::fixed_order
