// On a GPU of compute capability 9.0: stickbreaking.cuda.decode against rows of the prefill, with lengths on the device, from a graph,
// on two streams, and appending to caches. Skipped where there is none.
#include <gtest/gtest.h>

#include <limits>

#include "harness/case.h"
#include "harness/compare.h"
#include "harness/oracle.h"
#include "harness/reference.h"
#include "harness/slice.h"
#include "kernels/device/attention_tensors.h"
#include "kernels/device/gpu_test.h"
#include "kernels/device/random_inputs.h"
#include "kernels/hopper/stick_decode.h"

namespace attest::stick {
namespace {

using fixed_order::same_bits;

const float kNaN = std::numeric_limits<float>::quiet_NaN();

/// A decoding ready to be launched any number of times. What it may not read before it has written it holds NaN.
class Decoding {
 public:
  explicit Decoding(const Inputs& on_gpu, const at::Tensor& lengths = {}, cudaStream_t stream = nullptr)
      : in_(on_gpu),
        lengths_(lengths),
        out_(fixed_order::fresh_outputs(in_, Device::kCuda)),
        p_(fixed_order::params_of(in_, out_)),
        errors_(0) {
    p_.stream = stream;
    workspace_ = at::full({decode_workspace_bytes(p_) / 4}, kNaN, in_.q.options().dtype(at::kFloat));
    wait_for_gpu();
  }
  void launch() const {
    decode(p_, {lengths_.defined() ? lengths_.data_ptr<int32_t>() : nullptr, errors_.flag()}, workspace_.data_ptr());
  }
  Outputs outputs() const {
    wait_for_gpu();
    return out_.cpu();
  }
  Outputs run() const { return launch(), outputs(); }
  void forget() const { out_.out.fill_(7), out_.lse.fill_(7), wait_for_gpu(); }
  std::optional<std::string> error() { return wait_for_gpu(), errors_.take(); }

 private:
  Inputs in_;
  at::Tensor lengths_;
  Outputs out_;
  AttentionParams p_;
  at::Tensor workspace_;
  DeviceErrors errors_;
};

Outputs run(const Inputs& in) { return Decoding(in).run(); }

/// By the prefill kernel, whatever the number of queries: with room for what a backward would need, forward() takes no other.
Outputs prefill(const Inputs& in) {
  const Outputs out = fixed_order::fresh_outputs(in, Device::kCuda);
  const AttentionParams p = fixed_order::params_of(in, out);
  const auto bytes = in.q.options().dtype(at::kByte);
  const at::Tensor workspace = at::zeros({workspace_bytes(p)}, bytes), saved = at::zeros({saved_bytes(p)}, bytes);
  wait_for_gpu();
  forward(p, saved.numel() > 0 ? saved.data_ptr() : nullptr, workspace.data_ptr());
  wait_for_gpu();
  return out.cpu();
}

void expect_rows(const Outputs& actual, const Outputs& of_all, int64_t begin, const std::string& what) {
  const int64_t count = actual.out.size(2);
  EXPECT_TRUE(same_bits(actual.out, of_all.out.narrow(2, begin, count))) << what;
  EXPECT_TRUE(same_bits(actual.lse, of_all.lse.narrow(2, begin, count))) << what;
}

/// Normal: the stick is used up within a few hundred keys. Long range: logits near −8. Saturated: of a spread of 60.
enum class Logits { kNormal, kLongRange, kSaturated };

class StickDecodeOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_gpu_of(9)) GTEST_SKIP() << *why;
  }
  static Inputs inputs(AttentionProblem p, Logits logits = Logits::kNormal, bool padding = false) {
    p.op = Op::kStickBreaking;
    p.causal = true;
    p.softmax_scale = default_softmax_scale(p.head_dim);
    if (logits == Logits::kSaturated) p.softmax_scale *= 60.0F;
    Inputs in = fixed_order::random_inputs(p, padding, 1).forward_only();
    if (logits == Logits::kLongRange) {
      in.q.select(3, 0).fill_(8);
      in.k.select(3, 0).fill_(-1 / p.softmax_scale);
    }
    return in.to(Device::kCuda);
  }
};

AttentionProblem self_attention(int64_t heads_q, int64_t heads_kv, int64_t length, int64_t head_dim, int64_t head_dim_v,
                                Dtype dtype = Dtype::kBFloat16, bool attend_current = false) {
  return {.dtype = dtype, .num_heads_q = heads_q, .num_heads_kv = heads_kv, .seqlen_q = length, .seqlen_kv = length,
          .head_dim = head_dim, .head_dim_v = head_dim_v, .attend_current = attend_current};
}

TEST_F(StickDecodeOnGpu, decoded_queries_have_the_bits_of_their_rows_of_the_prefill) {
  for (const Logits logits : {Logits::kNormal, Logits::kLongRange, Logits::kSaturated})
    for (const AttentionProblem& p :
         {self_attention(8, 2, 2304, 128, 128), self_attention(3, 3, 1500, 64, 64, Dtype::kFloat16, true),
          self_attention(16, 1, 1300, 72, 40), self_attention(40, 1, 1100, 128, 64, Dtype::kBFloat16, true),
          self_attention(6, 2, 1033, 24, 128, Dtype::kFloat16)})
      for (const bool padding : {false, true}) {
        const Inputs in = inputs(p, logits, padding);
        const Outputs all = prefill(in);
        for (const int64_t count : {1, 2, 5, 16})
          for (const int64_t end : {int64_t{16}, int64_t{300}, int64_t{511}, int64_t{512}, int64_t{513}, int64_t{1025}, p.seqlen_q})
            expect_rows(run(slice_queries(in, end - count, count)), all, end - count,
                        to_string(in.problem) + " queries " + std::to_string(count) + " up to " + std::to_string(end));
      }
}

TEST_F(StickDecodeOnGpu, the_prefill_of_few_queries_takes_the_decoding_kernels_and_keeps_its_bits) {
  const Inputs in = inputs(self_attention(8, 2, 1100, 128, 128), Logits::kLongRange);
  const Outputs all = prefill(in);
  const KernelVariant& fused = *Registry<KernelVariant>::instance().find("stickbreaking.cuda.fused");
  for (const int64_t count : {1, 16, 17, 100}) expect_rows(fused.run(slice_queries(in, 1100 - count, count)).cpu(), all, 1100 - count, "");
}

/// A batch of caches with room; batch element b holds `lengths[b]` keys of `in`, then NaN.
Inputs caches(const Inputs& in, const std::vector<int32_t>& lengths, int64_t capacity, int64_t queries) {
  Inputs out = in;
  AttentionProblem& p = out.problem;
  p.batch = static_cast<int64_t>(lengths.size()), p.seqlen_q = queries, p.seqlen_kv = capacity;
  out.q = at::empty({p.batch, p.num_heads_q, queries, p.head_dim}, in.q.options());
  out.k = at::full({p.batch, p.num_heads_kv, capacity, p.head_dim}, kNaN, in.q.options());
  out.v = at::full({p.batch, p.num_heads_kv, capacity, p.head_dim_v}, kNaN, in.q.options());
  for (int64_t b = 0; b < p.batch; ++b) {
    const int64_t length = lengths[b];
    out.q[b].copy_(in.q[0].narrow(1, std::max<int64_t>(0, length - queries), queries));
    out.k[b].narrow(1, 0, length).copy_(in.k[0].narrow(1, 0, length));
    out.v[b].narrow(1, 0, length).copy_(in.v[0].narrow(1, 0, length));
  }
  return out;
}

at::Tensor on_gpu(const std::vector<int32_t>& x) { return at::tensor(x, at::kInt).to(at::Device(at::kCUDA, 0)); }

TEST_F(StickDecodeOnGpu, each_batch_element_has_its_length_and_nothing_past_it_is_read) {
  const std::vector<int32_t> lengths{1024, 1, 0, 512, 700, 2000, 513, 33};
  for (const Logits logits : {Logits::kNormal, Logits::kLongRange})
    for (const int64_t queries : {1, 7}) {
      const Inputs in = inputs(self_attention(8, 2, 2000, 128, 64), logits);
      const Outputs all = prefill(in);
      Decoding decoding(caches(in, lengths, 2053, queries), on_gpu(lengths));
      const Outputs out = decoding.run();
      for (size_t b = 0; b < lengths.size(); ++b) {
        const Outputs one{.out = out.out.narrow(0, b, 1), .lse = out.lse.narrow(0, b, 1)};
        if (lengths[b] >= queries) expect_rows(one, all, lengths[b] - queries, "length " + std::to_string(lengths[b]));
        if (lengths[b] > 0) continue;
        EXPECT_EQ(one.out.abs().max().item<float>(), 0.0F);
        EXPECT_EQ(one.lse.min().item<float>(), 1.0F);
      }
      EXPECT_EQ(decoding.error(), std::nullopt);
    }
}

TEST_F(StickDecodeOnGpu, lengths_outside_the_cache_are_clamped_and_reported) {
  const Inputs in = inputs(self_attention(4, 2, 600, 64, 64), Logits::kLongRange);
  const Outputs all = prefill(in);
  Decoding decoding(caches(in, {600, 600, 600}, 600, 1), on_gpu({600, 1000000, -5}));
  const Outputs out = decoding.run();
  for (const int64_t b : {0, 1}) expect_rows({.out = out.out.narrow(0, b, 1), .lse = out.lse.narrow(0, b, 1)}, all, 599, "");
  EXPECT_EQ(out.out[2].abs().max().item<float>(), 0.0F);
  EXPECT_NE(decoding.error().value_or("").find("a length on the device outside [0, capacity"), std::string::npos);
  EXPECT_EQ(decoding.error(), std::nullopt);
}

TEST_F(StickDecodeOnGpu, a_captured_graph_follows_the_lengths_and_two_streams_do_not_mix) {
  const Inputs in = inputs(self_attention(8, 2, 1100, 128, 128), Logits::kLongRange);
  const Outputs all = prefill(in);
  const Stream one, other;
  const at::Tensor lengths = on_gpu({1100});
  const Decoding first(caches(in, {1100}, 1200, 1), lengths, one.get()), second(caches(in, {700}, 900, 3), on_gpu({700}), other.get());
  const CapturedGraph graph(one.get(), [&] { first.launch(); });
  for (int round = 0; round < 3; ++round) {
    first.forget(), second.forget();
    for (int i = 0; i < 10; ++i) graph.replay(), second.launch();
    expect_rows(first.outputs(), all, 1099, "graph");
    expect_rows(second.outputs(), all, 697, "stream");
  }
  const Inputs shorter = caches(in, {800}, 1200, 1);
  const Outputs expected = Decoding(caches(in, {1100}, 1200, 1), on_gpu({800})).run();
  lengths.fill_(800), wait_for_gpu();
  graph.replay();
  expect_rows(first.outputs(), expected, 0, "another length");
}

template <class T>
View<T> view_of(const at::Tensor& t) {
  return {t.data_ptr(), t.stride(0), t.stride(1), t.stride(2), t.stride(3)};
}

TEST_F(StickDecodeOnGpu, appended_rows_are_those_of_a_cache_written_at_once_and_lengths_advance) {
  const auto options = at::TensorOptions(at::kBFloat16);
  for (const int64_t rows : {1, 3, 700}) {
    at::manual_seed(rows);
    const at::Device gpu(at::kCUDA, 0);
    const at::Tensor k = at::randn({3, 2, rows, 72}).to(options).to(gpu), v = at::randn({3, 2, rows, 40}).to(options).to(gpu);
    at::Tensor k_cache = at::zeros({3, 2, 1000, 72}, k.options()), v_cache = at::zeros({3, 2, 1000, 40}, k.options());
    const at::Tensor lengths = on_gpu({0, 300, 299});
    DeviceErrors errors(0);
    AppendParams p{.batch = 3, .heads = 2, .rows = rows, .head_dim = 72, .head_dim_v = 40, .capacity = 1000};
    p.k = view_of<const void>(k), p.v = view_of<const void>(v), p.k_cache = view_of<void>(k_cache), p.v_cache = view_of<void>(v_cache);
    p.seqlens_kv = lengths.data_ptr<int32_t>(), p.errors = errors.flag();
    wait_for_gpu();
    append_to_cache(p);
    wait_for_gpu();
    at::Tensor expected_k = at::zeros({3, 2, 1000, 72}, options), expected_v = at::zeros({3, 2, 1000, 40}, options);
    for (const int64_t b : {0, 1, 2}) {
      expected_k[b].narrow(1, std::vector<int64_t>{0, 300, 299}[b], rows).copy_(k[b]);
      expected_v[b].narrow(1, std::vector<int64_t>{0, 300, 299}[b], rows).copy_(v[b]);
    }
    EXPECT_TRUE(same_bits(k_cache.cpu(), expected_k));
    EXPECT_TRUE(same_bits(v_cache.cpu(), expected_v));
    EXPECT_TRUE(at::equal(lengths.cpu(), at::tensor({0 + rows, 300 + rows, 299 + rows}, at::kInt)));
    EXPECT_EQ(errors.take(), std::nullopt);

    lengths.copy_(on_gpu({static_cast<int32_t>(1001 - rows), -1, static_cast<int32_t>(1000 - rows)})), wait_for_gpu();
    append_to_cache(p);
    wait_for_gpu();
    expected_k[2].narrow(1, 1000 - rows, rows).copy_(k[2]);
    EXPECT_TRUE(same_bits(k_cache.cpu(), expected_k));
    EXPECT_TRUE(at::equal(lengths.cpu(), at::tensor({1001 - rows, int64_t{-1}, int64_t{1000}}, at::kInt)));
    EXPECT_NE(errors.take().value_or("").find("would have passed the capacity"), std::string::npos);
  }
}

/// `row`: one query on the CPU.
Reference reference_of(const Inputs& row) {
  for (const Oracle* oracle : Registry<Oracle>::instance().all())
    if (!oracle->domain.excludes(Case{.problem = row.problem})) return oracle->evaluate(row, 0);
  throw std::runtime_error("no oracle affords a row of " + std::to_string(row.problem.seqlen_kv) + " keys");
}

TEST_F(StickDecodeOnGpu, sampled_rows_of_65536_keys_have_the_bits_of_the_prefill_and_agree_with_the_oracle) {
  const KernelVariant& variant = *Registry<KernelVariant>::instance().find("stickbreaking.cuda.decode");
  for (const Logits logits : {Logits::kLongRange, Logits::kSaturated}) {
    const Inputs in = inputs(self_attention(4, 1, 65536, 128, 128), logits);
    const Outputs all = prefill(in);
    for (const int64_t row : {0, 511, 512, 8191, 40000, 65535}) {
      const Inputs alone = slice_queries(in, row, 1);
      expect_rows(run(alone), all, row, "row " + std::to_string(row));
      const Reference reference = reference_of(contiguous(alone).to(Device::kCpu));
      const ErrorUnits units = error_units(variant.contract.arithmetic, alone.problem);
      for (const Quantity q : {Quantity::kOut, Quantity::kLse}) {
        const Comparison c = compare(all[q].narrow(2, row, 1), reference[q], variant.contract.of(q), units);
        EXPECT_EQ(c.outcome, Comparison::Outcome::kPass) << name_of(q) << " of row " << row << ": " << c.headroom << " of the bound";
      }
    }
  }
}

}  // namespace
}  // namespace attest::stick
