#include "kernels/torch_decode.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "harness/slice.h"
#include "harness/variant.h"
#include "kernels/torch_testing.h"

namespace attest {
namespace {

using ::testing::HasSubstr;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

/// What a call is given; tests spoil one part of it.
struct Call {
  Tensor q, k_cache, v_cache, seqlens;
  MaybeTensor mask;
  bool attend_current = false;
  std::optional<double> scale;
};

std::tuple<Tensor, Tensor> decode(const Call& c) {
  using Signature = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const MaybeTensor&, bool,
                                               std::optional<double>);
  static const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(kDecodeOperator, "").typed<Signature>();
  return handle.call(c.q, c.k_cache, c.v_cache, c.seqlens, c.mask, c.attend_current, c.scale);
}

void append(Tensor k_cache, Tensor v_cache, Tensor seqlens, const Tensor& k, const Tensor& v) {
  using Signature = void(Tensor&, Tensor&, Tensor&, const Tensor&, const Tensor&);
  static const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(kAppendOperator, "").typed<Signature>();
  handle.call(k_cache, v_cache, seqlens, k, v);
}

constexpr int64_t kCapacity = 9;
const std::vector<int64_t> kLengths{9, 0, 4};

Tensor filled(at::IntArrayRef sizes, at::ScalarType type) { return at::randn(sizes).to(type); }

/// Three caches, what lies past their lengths NaN; 4 query heads, 2 KV heads, D = 8, Dv = 5.
Call call(int64_t queries, at::ScalarType type) {
  Call c{.q = filled({3, 4, queries, 8}, type),
         .k_cache = filled({3, 2, kCapacity, 8}, type),
         .v_cache = filled({3, 2, kCapacity, 5}, type),
         .seqlens = at::tensor(kLengths, at::kInt)};
  for (const int64_t b : {0, 1, 2})
    for (const Tensor& cache : {c.k_cache, c.v_cache})
      cache[b].narrow(1, kLengths[b], kCapacity - kLengths[b]).fill_(std::numeric_limits<float>::quiet_NaN());
  return c;
}

TEST(TorchDecode, each_batch_element_has_the_bits_of_the_twin_on_the_keys_it_has) {
  at::manual_seed(1);
  for (const auto type : {at::kHalf, at::kBFloat16, at::kFloat})
    for (const int64_t queries : {1, 5, 16})
      for (const bool masked : {false, true}) {
        Call c = call(queries, type);
        if (masked) c.mask = at::rand({3, kCapacity}) < 0.6;
        c.attend_current = queries == 5;
        c.scale = queries == 16 ? std::optional<double>(-0.7) : std::nullopt;
        const auto [out, rem] = decode(c);
        for (const int64_t b : {0, 2}) {
          Inputs in = slice_batch(decode_inputs(c.q, c.k_cache, c.v_cache, c.mask, c.attend_current, c.scale), b, 1);
          in.problem.seqlen_kv = kLengths[b];
          in.k = in.k.narrow(2, 0, kLengths[b]), in.v = in.v.narrow(2, 0, kLengths[b]);
          if (masked) in.key_padding_mask = in.key_padding_mask.narrow(1, 0, kLengths[b]);
          const Outputs expected = Registry<KernelVariant>::instance().find("stickbreaking.cpu.fixed_order")->run(in);
          EXPECT_TRUE(at::equal(out[b], expected.out[0]));
          EXPECT_TRUE(at::equal(rem[b], expected.lse[0]));
        }
        EXPECT_TRUE(at::equal(out[1], at::zeros_like(out[1])));
        EXPECT_TRUE(at::equal(rem[1], at::ones_like(rem[1])));
      }
}

TEST(TorchDecode, token_after_token_appended_and_decoded_gives_the_bits_of_the_prefill) {
  at::manual_seed(2);
  const int64_t tokens = 7;
  const Tensor q = at::randn({2, 4, tokens, 8}), k = at::randn({2, 2, tokens, 8}), v = at::randn({2, 2, tokens, 5});
  const Inputs prefill = decode_inputs(q, k, v, std::nullopt, false, std::nullopt);
  const Outputs expected = Registry<KernelVariant>::instance().find("stickbreaking.cpu.fixed_order")->run(prefill);
  Call c{.k_cache = at::full({2, 2, tokens, 8}, NAN), .v_cache = at::full({2, 2, tokens, 5}, NAN), .seqlens = at::zeros({2}, at::kInt)};
  for (int64_t t = 0; t < tokens; ++t) {
    append(c.k_cache, c.v_cache, c.seqlens, k.narrow(2, t, 1), v.narrow(2, t, 1));
    c.q = q.narrow(2, t, 1);
    const auto [out, rem] = decode(c);
    EXPECT_TRUE(at::equal(out, expected.out.narrow(2, t, 1)));
    EXPECT_TRUE(at::equal(rem, expected.lse.narrow(2, t, 1)));
  }
  EXPECT_TRUE(at::equal(c.seqlens, at::full({2}, tokens, at::kInt)));
}

TEST(TorchDecode, an_append_that_does_not_fit_raises_and_writes_nothing) {
  at::manual_seed(3);
  for (const int32_t length : {8, 9, -1}) {
    Tensor k_cache = at::zeros({2, 2, kCapacity, 8}), v_cache = at::zeros({2, 2, kCapacity, 5});
    Tensor seqlens = at::tensor({0, length}, at::kInt);
    const std::string message =
        message_of([&] { append(k_cache, v_cache, seqlens, at::randn({2, 2, 2, 8}), at::randn({2, 2, 2, 5})); });
    EXPECT_THAT(message, HasSubstr("2 more rows than seqlens[1] = " + std::to_string(length) + " don't fit a capacity of 9"));
    EXPECT_EQ(k_cache.abs().sum().item<float>() + v_cache.abs().sum().item<float>(), 0.0F);
    EXPECT_TRUE(at::equal(seqlens, at::tensor({0, length}, at::kInt)));
  }
}

TEST(TorchDecode, lengths_that_share_memory_are_refused_before_anything_is_written) {
  Tensor k_cache = at::zeros({2, 2, kCapacity, 8}), v_cache = at::zeros({2, 2, kCapacity, 5});
  const Tensor seqlens = at::zeros({1}, at::kInt).expand({2});
  EXPECT_THAT(message_of([&] { append(k_cache, v_cache, seqlens, at::ones({2, 2, 1, 8}), at::ones({2, 2, 1, 5})); }),
              HasSubstr("seqlens must be contiguous"));
  EXPECT_EQ(k_cache.sum().item<float>() + v_cache.sum().item<float>(), 0.0F);
}

TEST(TorchDecode, meta_tensors_give_the_shapes_and_dtypes_of_a_run) {
  const Call c = call(3, at::kBFloat16);
  const auto meta = [](const Tensor& t) { return t.to(at::Device(at::kMeta)); };
  const auto [out, rem] = decode({.q = meta(c.q), .k_cache = meta(c.k_cache), .v_cache = meta(c.v_cache), .seqlens = meta(c.seqlens)});
  const auto [real_out, real_rem] = decode(c);
  EXPECT_EQ(out.sizes(), real_out.sizes());
  EXPECT_EQ(rem.sizes(), real_rem.sizes());
  EXPECT_EQ(out.scalar_type(), real_out.scalar_type());
  EXPECT_EQ(rem.scalar_type(), real_rem.scalar_type());
  EXPECT_TRUE(out.is_meta() && rem.is_meta());
  EXPECT_EQ(message_of([&] { append(meta(c.k_cache), meta(c.v_cache), meta(c.seqlens), meta(c.k_cache), meta(c.v_cache)); }), "");
}

TEST(TorchDecode, wrong_arguments_of_a_decoding_raise_a_sentence_naming_them) {
  const auto says = [](const std::function<void(Call&)>& spoil) {
    Call c = call(2, at::kFloat);
    spoil(c);
    return message_of([&] { decode(c); });
  };
  EXPECT_EQ(says([](Call&) {}), "");
  EXPECT_THAT(says([](Call& c) { c.q = c.q[0]; }), HasSubstr("must be [batch, heads, length, head_dim]"));
  EXPECT_THAT(says([](Call& c) { c.q = c.q.to(at::kDouble); }), HasSubstr("use float16, bfloat16 or float32"));
  EXPECT_THAT(says([](Call& c) { c.v_cache = c.v_cache.to(at::kHalf); }), HasSubstr("must have one dtype"));
  EXPECT_THAT(says([](Call& c) { c.v_cache = c.v_cache.slice(2, 1); }), HasSubstr("the same batch size, heads and capacity"));
  EXPECT_THAT(says([](Call& c) { c.q = c.q.slice(0, 1); }), HasSubstr("must have one batch size, got 2 and 3"));
  EXPECT_THAT(says([](Call& c) { c.q = c.q.slice(1, 1); }), HasSubstr("the heads of q (3) must be a multiple of those of k_cache (2)"));
  EXPECT_THAT(says([](Call& c) { c.q = c.q.slice(3, 1); }), HasSubstr("must have the same head_dim, got 7 and 8"));
  EXPECT_THAT(says([](Call& c) { c.q = c.q.repeat({1, 1, 9, 1}); }), HasSubstr("18 queries a sequence, at most 16"));
  EXPECT_THAT(says([](Call& c) { c.seqlens = c.seqlens.to(at::kLong); }), HasSubstr("seqlens must be int32"));
  EXPECT_THAT(says([](Call& c) { c.seqlens = c.seqlens.slice(0, 1); }), HasSubstr("seqlens must be [batch], got [2]"));
  EXPECT_THAT(says([](Call& c) { c.seqlens[2] = 10; }), HasSubstr("seqlens[2] is 10, outside [0, capacity 9]"));
  EXPECT_THAT(says([](Call& c) { c.seqlens[0] = -1; }), HasSubstr("seqlens[0] is -1"));
  EXPECT_THAT(says([](Call& c) { c.mask = at::ones({3, 8}, at::kBool); }), HasSubstr("must be [batch, capacity], got [3, 8]"));
  EXPECT_THAT(says([](Call& c) { c.mask = at::ones({3, 9}); }), HasSubstr("key_padding_mask must be bool"));
  EXPECT_THAT(says([](Call& c) { c.scale = INFINITY; }), HasSubstr("scale must be finite"));
}

TEST(TorchDecode, wrong_arguments_of_an_append_raise_a_sentence_naming_them) {
  const auto says = [](const std::function<void(Tensor& k, Tensor& v)>& spoil) {
    Tensor k = at::ones({3, 2, 1, 8}), v = at::ones({3, 2, 1, 5});
    spoil(k, v);
    return message_of([&] {
      append(at::zeros({3, 2, kCapacity, 8}), at::zeros({3, 2, kCapacity, 5}), at::zeros({3}, at::kInt), k, v);
    });
  };
  EXPECT_EQ(says([](Tensor&, Tensor&) {}), "");
  EXPECT_THAT(says([](Tensor& k, Tensor&) { k = k.slice(0, 1); }), HasSubstr("must have one batch size, got 2 and 3"));
  EXPECT_THAT(says([](Tensor& k, Tensor& v) { k = k.slice(1, 1), v = v.slice(1, 1); }), HasSubstr("the same number of heads, got 1 and 2"));
  EXPECT_THAT(says([](Tensor& k, Tensor&) { k = k.repeat({1, 1, 2, 1}); }), HasSubstr("k and v must have the same batch size, heads and length"));
  EXPECT_THAT(says([](Tensor&, Tensor& v) { v = v.slice(3, 1); }), HasSubstr("v and v_cache must have the same head_dim, got 4 and 5"));
  EXPECT_THAT(says([](Tensor&, Tensor& v) { v = v.to(at::kHalf); }), HasSubstr("of k's dtype"));
}

}  // namespace
}  // namespace attest
