#include "harness/materialise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/error.h"
#include "harness/tensors.h"

namespace attest {
namespace {

constexpr const char* kShape = "B=2 Hq=4 Hkv=2 Sq=6 Skv=6 D=8 dlse seed=11 ";

Inputs made(const std::string& words) { return materialise(parse_case(words)); }

/// FNV-1a over the bit patterns, in row-major order.
uint64_t hash_of_bits(const Inputs& in) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const at::Tensor& t : {in.q, in.k, in.v, in.dout, in.dlse}) {
    const at::Tensor own = t.contiguous();
    const auto* bytes = static_cast<const uint8_t*>(own.const_data_ptr());
    for (size_t i = 0; i < own.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  }
  return hash;
}

TEST(Materialise, the_same_case_has_the_same_bits_on_every_machine) {
  const std::string shape = kShape;
  EXPECT_EQ(hash_of_bits(made(shape + "bf16")), 12821035329256546694U);
  EXPECT_EQ(hash_of_bits(made(shape + "fp16 logits=saturated(88) values=cancelling")), 17637073757407300202U);
  EXPECT_EQ(hash_of_bits(made(shape + "fp32 logits=cancelling values=large")), 14622106748872964548U);
  EXPECT_EQ(hash_of_bits(made(shape + "bf16 logits=one-hot(300) values=subnormal padding=some poison layout=packed-qkv")),
            15526819122729508203U);
  EXPECT_EQ(hash_of_bits(made(shape + "fp16 logits=subnormal values=constant")), 15213864570981001590U);
}

TEST(Materialise, gives_valid_inputs_with_distinct_operands) {
  for (Layout layout : EnumSet<Layout>::all().members())
    for (const char* shape : {"B=2 Hq=4 Hkv=2 Sq=6 Skv=6 D=8", "B=1 Hq=3 Hkv=1 Sq=2 Skv=5 D=3 Dv=7", "B=3 Sq=5 Skv=2 D=1"}) {
      Case c = parse_case(std::string(shape) + " dlse padding=right");
      c.layout = layout;
      EXPECT_EQ(materialise(c).invalid_reason(), std::nullopt) << c;
    }
  const Inputs in = made("Hq=2 Hkv=2 Sq=4 Skv=4 D=8");
  EXPECT_FALSE(in.q.equal(in.k) || in.k.equal(in.v) || in.v.equal(in.dout) || in.q.equal(in.dout));
  EXPECT_FALSE(in.dlse.defined() || in.key_padding_mask.defined());
}

TEST(Materialise, a_smaller_case_holds_a_part_of_the_data) {
  for (const char* fill : {"", "logits=saturated(88)", "logits=cancelling values=cancelling", "values=subnormal"}) {
    const Inputs whole = made(std::string("B=3 Hq=4 Hkv=2 Sq=7 Skv=9 D=8 dlse seed=3 ") + fill);
    const Inputs part = made(std::string("B=2 Hq=2 Hkv=1 Sq=5 Skv=4 D=8 dlse seed=3 ") + fill);
    EXPECT_TRUE(part.q.equal(whole.q.narrow(0, 0, 2).narrow(1, 0, 2).narrow(2, 0, 5))) << fill;
    EXPECT_TRUE(part.k.equal(whole.k.narrow(0, 0, 2).narrow(1, 0, 1).narrow(2, 0, 4))) << fill;
    EXPECT_TRUE(part.v.equal(whole.v.narrow(0, 0, 2).narrow(1, 0, 1).narrow(2, 0, 4))) << fill;
    EXPECT_TRUE(part.dout.equal(whole.dout.narrow(0, 0, 2).narrow(1, 0, 2).narrow(2, 0, 5))) << fill;
    EXPECT_TRUE(part.dlse.equal(whole.dlse.narrow(0, 0, 2).narrow(1, 0, 2).narrow(2, 0, 5))) << fill;
  }
}

TEST(Layouts, all_hold_the_values_of_the_contiguous_one) {
  const Inputs plain = made(kShape);
  for (const char* layout : {"transposed", "packed-qkv", "padded", "misaligned"}) {
    const Inputs in = made(std::string(kShape) + "layout=" + layout);
    EXPECT_TRUE(in.q.equal(plain.q) && in.k.equal(plain.k) && in.v.equal(plain.v) && in.dout.equal(plain.dout)) << layout;
  }
  const Inputs expanded = made(std::string(kShape) + "layout=expanded");
  EXPECT_TRUE(expanded.q.equal(plain.q.narrow(0, 0, 1).expand_as(plain.q)));
}

TEST(Layouts, strides_and_offsets_are_what_they_say) {
  const std::string shape = kShape;
  EXPECT_TRUE(made(shape).q.is_contiguous());
  EXPECT_EQ(made(shape + "layout=transposed").q.strides(), at::IntArrayRef({192, 8, 32, 1}));
  const Inputs packed = made(shape + "layout=packed-qkv");
  EXPECT_EQ(packed.v.strides(), at::IntArrayRef({384, 8, 64, 1}));
  EXPECT_EQ(packed.v.storage_offset(), 48);
  EXPECT_TRUE(packed.q.is_alias_of(packed.k) && packed.q.is_alias_of(packed.v));
  EXPECT_FALSE(made(shape + "Sq=3 layout=packed-qkv").q.is_alias_of(made(shape + "Sq=3 layout=packed-qkv").k));
  const Inputs padded = made(shape + "layout=padded");
  for (const at::Tensor& t : {padded.q, padded.k, padded.v, padded.dout}) EXPECT_GT(t.stride(2), 8);
  const Inputs misaligned = made(shape + "layout=misaligned");
  for (const at::Tensor& t : {misaligned.q, misaligned.k, misaligned.v, misaligned.dout}) {
    EXPECT_GE(t.storage_offset(), 1);
    EXPECT_LE(t.storage_offset(), 7);
  }
  EXPECT_EQ(made(shape + "layout=expanded").dout.stride(0), 0);
}

/// Elements of the storage that are NaN.
int64_t gaps(const at::Tensor& t) {
  const auto elements = static_cast<int64_t>(t.storage().nbytes() / t.element_size());
  return at::isnan(t.as_strided({elements}, {1}, 0)).sum().item<int64_t>();
}

TEST(Layouts, bytes_between_and_around_the_rows_are_nan) {
  const Inputs padded = made(std::string(kShape) + "layout=padded");
  EXPECT_EQ(gaps(padded.q), 2 * 4 * 6 * (padded.q.stride(2) - 8));
  EXPECT_EQ(gaps(made(std::string(kShape) + "layout=misaligned").k), 8);
  EXPECT_EQ(gaps(made(std::string(kShape) + "layout=packed-qkv").k), 0);
  EXPECT_FALSE(at::isnan(padded.q).any().item<bool>());
}

TEST(Poison, stands_in_every_padded_key_and_nowhere_else) {
  for (const char* dtype : {"fp16", "bf16", "fp32"})
    for (const char* padding : {"right", "left", "some", "all", "leading-tile"}) {
      const Inputs in = made(std::string("B=2 Skv=13 D=4 seed=6 poison padding=") + padding + " " + dtype);
      for (const at::Tensor& t : {in.k, in.v}) {
        const at::Tensor wild = at::isfinite(t).logical_not().logical_or(t.abs() > 1e29).all(3).all(1);
        EXPECT_TRUE(wild.equal(in.key_padding_mask.logical_not())) << dtype << padding;
        EXPECT_TRUE(wild.equal(at::isfinite(t).logical_not().logical_or(t.abs() > 1e29).any(3).any(1)));
      }
      EXPECT_TRUE(at::isfinite(in.q).all().item<bool>() && at::isfinite(in.dout).all().item<bool>());
    }
}

TEST(Poison, comes_in_every_kind) {
  const at::Tensor v = made("Skv=13 D=1 poison padding=all").v.to(at::kDouble);
  EXPECT_TRUE(at::isnan(v).any().item<bool>());
  EXPECT_TRUE(v.eq(std::numeric_limits<double>::infinity()).any().item<bool>());
  EXPECT_TRUE(v.eq(-std::numeric_limits<double>::infinity()).any().item<bool>());
  EXPECT_TRUE((at::isfinite(v).logical_and(v > 9e29)).any().item<bool>());
}

TEST(Poison, in_shared_memory_spares_what_another_batch_element_sees) {
  const Inputs in = made("B=2 Skv=5 D=4 poison padding=all layout=expanded");  // hides batch element 1 alone
  EXPECT_TRUE(at::isfinite(in.v).all().item<bool>());
  const Inputs same = made("B=2 Skv=5 D=4 poison padding=some layout=expanded");
  EXPECT_TRUE(same.key_padding_mask[0].equal(same.key_padding_mask[1]));
  EXPECT_FALSE(at::isfinite(same.v).all().item<bool>());
}

TEST(Materialise, refuses_an_invalid_case_with_its_reason) { EXPECT_THROW(made("Hq=3 Hkv=2"), UsageError); }

}  // namespace
}  // namespace attest
