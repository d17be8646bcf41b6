#include "harness/slice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/error.h"
#include "harness/materialise.h"

namespace attest {
namespace {

Inputs made(const std::string& words = "") {
  return materialise(parse_case("B=3 Hq=4 Hkv=2 Sq=4 Skv=7 D=4 Dv=6 dlse padding=some seed=2 " + words));
}

void expect_equal(const Inputs& a, const Inputs& b) {
  EXPECT_EQ(a.problem, b.problem);
  EXPECT_EQ(a.invalid_reason(), std::nullopt);
  EXPECT_TRUE(a.q.equal(b.q));
  EXPECT_TRUE(a.k.equal(b.k));
  EXPECT_TRUE(a.v.equal(b.v));
  EXPECT_TRUE(a.dout.equal(b.dout));
  EXPECT_TRUE(a.dlse.equal(b.dlse));
  EXPECT_TRUE(a.key_padding_mask.equal(b.key_padding_mask));
}

TEST(Slice, a_batch_slice_is_a_narrow_of_every_tensor) {
  const Inputs in = made();
  Inputs by_hand{in.problem,
                 in.q.narrow(0, 1, 2),
                 in.k.narrow(0, 1, 2),
                 in.v.narrow(0, 1, 2),
                 in.dout.narrow(0, 1, 2),
                 in.dlse.narrow(0, 1, 2),
                 in.key_padding_mask.narrow(0, 1, 2)};
  by_hand.problem.batch = 2;
  expect_equal(slice_batch(in, 1, 2), by_hand);
  EXPECT_TRUE(slice_batch(in, 1, 2).k.is_alias_of(in.k));
  EXPECT_THROW(slice_batch(in, 2, 2), UsageError);
}

TEST(Slice, queries_keep_their_positions_under_a_causal_mask) {
  const Inputs in = made("causal");
  const Inputs out = slice_queries(in, 1, 2);  // at positions 4 and 5
  for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(out.problem.position(i), in.problem.position(1 + i));
  Inputs by_hand{in.problem,
                 in.q.narrow(2, 1, 2),
                 in.k.narrow(2, 0, 6),
                 in.v.narrow(2, 0, 6),
                 in.dout.narrow(2, 1, 2),
                 in.dlse.narrow(2, 1, 2),
                 in.key_padding_mask.narrow(1, 0, 6)};
  by_hand.problem.seqlen_q = 2;
  by_hand.problem.seqlen_kv = 6;
  expect_equal(out, by_hand);
}

TEST(Slice, queries_see_all_keys_without_a_causal_mask) {
  const Inputs out = slice_queries(made(), 3, 1);
  EXPECT_EQ(out.problem.seqlen_kv, 7);
  EXPECT_TRUE(out.q.equal(made().q.narrow(2, 3, 1)));
  EXPECT_EQ(out.invalid_reason(), std::nullopt);
}

TEST(Slice, a_chunk_of_queries_before_the_first_key_is_refused) {
  const Inputs in = materialise(parse_case("Sq=5 Skv=2 causal"));
  EXPECT_THROW(slice_queries(in, 0, 3), UsageError);
  EXPECT_EQ(slice_queries(in, 0, 4).problem.seqlen_kv, 1);
}

TEST(Slice, the_first_keys_move_no_query) {
  const Inputs in = made("causal");
  const Inputs out = first_keys(in, 5);
  expect_equal(out, slice_queries(in, 0, 2));
  EXPECT_EQ(out.problem.position(0), in.problem.position(0));
  EXPECT_EQ(first_keys(made(), 5).problem.seqlen_q, 4);
  EXPECT_THROW(first_keys(in, 3), UsageError);
}

TEST(Slice, gathering_reorders_and_repeats_batch_elements) {
  for (Layout layout : EnumSet<Layout>::all().members()) {
    const Inputs in = made("layout=" + std::string(name_of(layout)));
    const Inputs out = gather_batch(in, {2, 0, 2, 1});
    EXPECT_EQ(out.problem.batch, 4);
    EXPECT_EQ(out.invalid_reason(), std::nullopt);
    const int64_t order[] = {2, 0, 2, 1};
    for (int64_t b = 0; b < 4; ++b) expect_equal(slice_batch(out, b, 1), slice_batch(in, order[b], 1));
  }
  const Inputs transposed = gather_batch(made("layout=transposed"), {1, 0});
  EXPECT_EQ(transposed.q.strides(), at::IntArrayRef({64, 4, 16, 1}));
}

TEST(Slice, a_cache_has_the_same_keys_and_a_tail_of_nan) {
  const Inputs in = made("layout=transposed");
  const Inputs out = in_cache(in, 10);
  expect_equal(out, in);
  const at::Tensor whole = out.v.as_strided({3, 2, 10, 6}, out.v.strides(), 0);
  EXPECT_TRUE(at::isnan(whole.narrow(2, 7, 3)).all().item<bool>());
  EXPECT_THROW(in_cache(in, 6), UsageError);
}

TEST(Slice, filling_padded_keys_changes_those_alone_and_keeps_the_layout) {
  for (Layout layout : EnumSet<Layout>::all().members()) {
    const Inputs in = made("Dv=4 Sq=7 poison layout=" + std::string(name_of(layout)));
    const at::Tensor before = in.v.clone();
    const Inputs out = fill_padded_keys(in, -3.0);
    const at::Tensor hidden = in.key_padding_mask.logical_not().view({3, 1, 7, 1});
    EXPECT_TRUE(out.v.equal(at::where(hidden.expand_as(in.v), at::full_like(in.v, -3.0), in.v))) << name_of(layout);
    EXPECT_TRUE(out.k.masked_select(hidden.expand_as(out.k)).eq(-3.0).all().item<bool>()) << name_of(layout);
    EXPECT_EQ(out.k.strides(), in.k.strides()) << name_of(layout);
    EXPECT_EQ(out.k.storage_offset(), in.k.storage_offset()) << name_of(layout);
    EXPECT_TRUE(at::isclose(in.v, before, 0, 0, /*equal_nan=*/true).all().item<bool>());  // the original is untouched
  }
}

TEST(Slice, filling_padded_keys_reaches_each_batch_element_of_shared_memory) {
  const Inputs in = made("layout=expanded padding=all");
  const Inputs out = fill_padded_keys(in, 5.0);
  EXPECT_TRUE(out.v.select(0, 1).eq(5.0).all().item<bool>());
  EXPECT_TRUE(out.v.select(0, 0).equal(in.v.select(0, 0)));
}

TEST(Slice, filling_overflows_to_infinity_and_needs_a_mask) {
  EXPECT_TRUE(at::isinf(fill_padded_keys(made("fp16 padding=all"), 1e30).v.select(0, 1)).all().item<bool>());
  const Inputs open = made("padding=none");
  EXPECT_TRUE(fill_padded_keys(open, 1).v.equal(open.v));
}

TEST(Slice, contiguous_copies_start_at_the_start_of_their_own_memory) {
  const Inputs in = made("layout=misaligned");
  const Inputs out = contiguous(in);
  expect_equal(out, in);
  EXPECT_EQ(out.q.storage_offset(), 0);
  EXPECT_TRUE(out.k.is_contiguous());
  EXPECT_FALSE(contiguous(out).q.is_alias_of(out.q));
}

}  // namespace
}  // namespace attest
