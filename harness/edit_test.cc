#include "harness/edit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/error.h"
#include "harness/materialise.h"

namespace attest {
namespace {

Inputs example() {
  return materialise(
      parse_case("op=softmax B=2 Hq=4 Hkv=2 Sq=3 Skv=5 D=4 Dv=6 bf16 causal padding=right dlse layout=padded seed=3"));
}

TEST(Edit, zero_and_ones_change_one_tensor_and_keep_its_layout) {
  const Inputs in = example();
  const Inputs out = apply_edit(in, "ones k");
  EXPECT_TRUE(out.k.eq(1).all().item<bool>());
  EXPECT_EQ(out.k.strides(), in.k.strides());
  EXPECT_TRUE(out.q.is_same(in.q));
  EXPECT_FALSE(in.k.eq(1).all().item<bool>()) << "the original is left alone";
}

TEST(Edit, every_candidate_fits_every_layout) {
  for (Layout layout : EnumSet<Layout>::all().members()) {
    Case c = parse_case("op=softmax B=3 Hq=2 Hkv=2 Sq=4 Skv=4 D=4 fp16 dlse seed=3");
    c.layout = layout;
    const Inputs in = materialise(c);
    for (const std::string& edit : edit_candidates(in, true)) {
      const Inputs out = apply_edit(in, edit);
      if (edit == "ones v") EXPECT_TRUE(out.v.eq(1).all().item<bool>()) << to_string(c);
    }
  }
}

TEST(Edit, pow2_rounds_towards_zero_and_keeps_the_sign) {
  Inputs in = example();
  in.v = in.v.clone();
  in.v[0][0][0][0] = -3.5;
  in.v[0][0][0][1] = 0.75;
  in.v[0][0][0][2] = 0;
  const at::Tensor v = apply_edit(in, "pow2 v").v;
  EXPECT_EQ(v[0][0][0][0].item<float>(), -2);
  EXPECT_EQ(v[0][0][0][1].item<float>(), 0.5);
  EXPECT_EQ(v[0][0][0][2].item<float>(), 0);
}

TEST(Edit, keep_head_keeps_the_heads_of_its_group) {
  const Inputs in = example();
  const Inputs out = apply_edit(in, "keep head 1");
  EXPECT_EQ(out.problem.num_heads_q, 2);
  EXPECT_EQ(out.problem.num_heads_kv, 1);
  EXPECT_TRUE(out.q.equal(in.q.narrow(1, 2, 2)));
  EXPECT_FALSE(out.invalid_reason().has_value());
}

TEST(Edit, every_candidate_gives_valid_inputs) {
  const Inputs in = example();
  for (const std::string& edit : edit_candidates(in, true)) {
    const Inputs out = apply_edit(in, edit);
    EXPECT_FALSE(out.invalid_reason().has_value()) << edit << ": " << out.invalid_reason().value_or("");
    EXPECT_FALSE(out.problem.invalid_reason().has_value()) << edit;
  }
}

TEST(Edit, without_structure_no_candidate_changes_the_problem) {
  const Inputs in = example();
  for (const std::string& edit : edit_candidates(in, false)) EXPECT_EQ(apply_edit(in, edit).problem, in.problem) << edit;
}

TEST(Edit, what_is_no_edit_is_refused_with_a_sentence) {
  const Inputs in = example();
  for (const char* edit : {"", "zero", "zero x", "double q", "keep batch 0", "keep batch 1 9", "keep keys -1 2", "keep dims 0",
                           "keep dims 99", "ones key_padding_mask"})
    EXPECT_THROW(apply_edit(in, edit), UsageError) << edit;
}

}  // namespace
}  // namespace attest
