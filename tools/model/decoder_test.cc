#include "tools/model/decoder.h"

#include <gtest/gtest.h>

namespace attest::model {
namespace {

constexpr Shape kTiny{.vocabulary = 61, .layers = 2, .hidden = 32, .num_heads_q = 4, .num_heads_kv = 2, .head_dim = 16, .mlp = 48};

at::Tensor tokens(int64_t batch, int64_t count, Device device) {
  const at::Tensor all = at::arange(batch * count, at::kLong);
  return ((all * all * 7 + all * 3 + 5) % kTiny.vocabulary).view({batch, count}).to(torch_device(device));
}

/// Prompt, then decoded tokens, each bit of every logit as in one uncached forward over all.
void expect_same_logits(const Decoder& decoder, Device device, int64_t batch) {
  constexpr int64_t kPrompt = 67, kAll = 74;
  const at::Tensor text = tokens(batch, kAll, device), whole = decoder.forward(text);
  ASSERT_TRUE(at::isfinite(whole).all().item<bool>());
  Cache cache = decoder.make_cache(batch, 80);
  const at::Tensor first = decoder.prefill(text.narrow(1, 0, kPrompt), cache);
  EXPECT_TRUE(at::equal(first, whole.narrow(1, 0, kPrompt)));
  for (int64_t i = kPrompt; i < kAll; ++i)
    EXPECT_TRUE(at::equal(decoder.step(text.narrow(1, i, 1), cache), whole.narrow(1, i, 1))) << "token " << i;
  EXPECT_TRUE((cache.seqlens == kAll).all().item<bool>());
}

TEST(Decoder, cached_steps_give_the_logits_of_an_uncached_forward) {
  expect_same_logits(Decoder(kTiny, Dtype::kBFloat16, Device::kCpu, 3), Device::kCpu, 2);
}

TEST(Decoder, a_sequence_has_the_same_logits_alone) {
  const Decoder decoder(kTiny, Dtype::kFloat32, Device::kCpu, 3);
  const at::Tensor text = tokens(3, 41, Device::kCpu), whole = decoder.forward(text);
  for (int64_t b = 0; b < 3; ++b) EXPECT_TRUE(at::equal(decoder.forward(text.narrow(0, b, 1)), whole.narrow(0, b, 1)));
}

TEST(Decoder, tokens_depend_on_earlier_ones_alone) {
  const Decoder decoder(kTiny, Dtype::kFloat32, Device::kCpu, 3);
  at::Tensor text = tokens(1, 9, Device::kCpu);
  const at::Tensor before = decoder.forward(text);
  text[0][5] += 1;
  const at::Tensor after = decoder.forward(text);
  EXPECT_TRUE(at::equal(before.narrow(1, 0, 5), after.narrow(1, 0, 5)));
  for (int64_t i = 5; i < 9; ++i) EXPECT_FALSE(at::equal(before[0][i], after[0][i])) << "token " << i;
}

TEST(Decoder, a_full_cache_takes_no_further_token) {
  const Decoder decoder(kTiny, Dtype::kFloat32, Device::kCpu, 3);
  const at::Tensor text = tokens(1, 5, Device::kCpu);
  Cache cache = decoder.make_cache(1, 4);
  decoder.prefill(text.narrow(1, 0, 4), cache);
  EXPECT_ANY_THROW(decoder.step(text.narrow(1, 4, 1), cache));
}

TEST(DecoderOnGpu, cached_steps_give_the_logits_of_an_uncached_forward) {
  if (auto why = load_cuda()) GTEST_SKIP() << *why;
  for (const int64_t batch : {1, 8}) expect_same_logits(Decoder({}, Dtype::kBFloat16, Device::kCuda, 3), Device::kCuda, batch);
}

}  // namespace
}  // namespace attest::model
