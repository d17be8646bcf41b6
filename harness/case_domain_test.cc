#include "harness/case_domain.h"

#include <gtest/gtest.h>

#include <vector>

namespace attest {
namespace {

Case plain(const std::string& words = "") { return parse_case("B=2 Hq=6 Hkv=3 Sq=4 Skv=8 D=16 Dv=32 bf16 " + words); }

/// One restriction each, with a case inside and a case outside.
struct Restriction {
  const char* name;
  CaseDomain domain;
  Case inside, outside;
};

std::vector<Restriction> restrictions() {
  return {
      {"op", {.ops = {Op::kStickBreaking}}, plain("op=stickbreaking"), plain()},
      {"dtype", {.dtypes = {Dtype::kFloat16}}, plain("fp16"), plain()},
      {"batch", {.batch = {2, 3}}, plain(), plain("B=4")},
      {"heads", {.num_heads_q = {1, 6}}, plain(), plain("Hq=9")},
      {"heads kv", {.num_heads_kv = {3, 3}}, plain(), plain("Hkv=2")},
      {"group", {.group = {2, 2}}, plain(), plain("Hkv=2")},
      {"Sq", {.seqlen_q = {4, 9}}, plain(), plain("Sq=3")},
      {"Skv", {.seqlen_kv = {1, 8}}, plain(), plain("Skv=9")},
      {"D", {.head_dim = {16, 16}}, plain(), plain("D=17")},
      {"Dv", {.head_dim_v = {1, 32}}, plain(), plain("Dv=33")},
      {"multiple", {.head_dim_multiple = 8}, plain(), plain("Dv=12")},
      {"equal dims", {.equal_head_dims = true}, plain("Dv=16"), plain()},
      {"square", {.square_if_causal = true}, plain(), plain("causal")},
      {"within", {.queries_within_keys = true}, plain(), plain("Sq=9")},
      {"causal", {.causal = {true}}, plain("causal"), plain()},
      {"current", {.attend_current = {false}}, plain("op=stickbreaking"), plain("op=stickbreaking attend_current")},
      {"padding", {.padding = {KeyPadding::kNone}}, plain(), plain("padding=left")},
      {"poison", {.poison = {false}}, plain("padding=left"), plain("padding=left poison")},
      {"dlse", {.dlse = {true}}, plain("dlse"), plain()},
      {"scale", {.negative_or_zero_scale = {false}}, plain("scale=3"), plain("scale=0")},
      {"logits", {.logits = {LogitFill::kNormal}}, plain(), plain("logits=equal")},
      {"values", {.values = {ValueFill::kLarge}}, plain("values=large"), plain()},
      {"layout", {.layouts = {Layout::kPadded}}, plain("layout=padded"), plain()},
      {"work", {.max_work = 18432}, plain(), plain("Skv=9")},
  };
}

TEST(CaseDomain, the_default_holds_every_case) {
  for (const Restriction& r : restrictions()) {
    EXPECT_EQ(CaseDomain{}.excludes(r.inside), std::nullopt) << r.name;
    EXPECT_EQ(CaseDomain{}.excludes(r.outside), std::nullopt) << r.name;
  }
}

TEST(CaseDomain, each_restriction_excludes_with_a_reason_and_nothing_else) {
  for (const Restriction& r : restrictions()) {
    EXPECT_EQ(r.domain.excludes(r.inside), std::nullopt) << r.name;
    ASSERT_TRUE(r.domain.excludes(r.outside)) << r.name;
    EXPECT_FALSE(r.domain.excludes(r.outside)->empty()) << r.name;
  }
  EXPECT_EQ(CaseDomain{.head_dim_multiple = 16}.excludes(plain("D=72")), "D=72 is not a multiple of 16");
}

TEST(CaseDomain, an_intersection_excludes_exactly_what_either_excludes) {
  const auto all = restrictions();
  for (const Restriction& a : all)
    for (const Restriction& b : all)
      for (const Restriction& r : all)
        for (const Case& c : {r.inside, r.outside})
          EXPECT_EQ((a.domain & b.domain).excludes(c).has_value(),
                    a.domain.excludes(c).has_value() || b.domain.excludes(c).has_value())
              << a.name << " & " << b.name << ": " << c;
}

TEST(CaseDomain, intersection_with_the_default_changes_nothing) {
  for (const Restriction& r : restrictions()) {
    EXPECT_EQ(r.domain & CaseDomain{}, r.domain);
    EXPECT_EQ(CaseDomain{} & r.domain, r.domain);
    EXPECT_EQ(r.domain & r.domain, r.domain);
  }
}

TEST(CaseDomain, what_makes_it_empty_is_said) {
  EXPECT_EQ(CaseDomain{}.empty_reason(), std::nullopt);
  for (const Restriction& r : restrictions()) EXPECT_EQ(r.domain.empty_reason(), std::nullopt) << r.name;
  const std::vector<CaseDomain> empty = {
      {.dtypes = {}},
      {.batch = {3, 2}},
      {.num_heads_q = {3, 3}, .num_heads_kv = {2, 2}},
      {.num_heads_kv = {1, 1}, .group = {2, 2}, .seqlen_q = {9, 9}, .seqlen_kv = {1, 8}, .queries_within_keys = true},
      {.head_dim = {17, 31}, .head_dim_multiple = 16},
      {.head_dim = {1, 8}, .head_dim_v = {9, 16}, .equal_head_dims = true},
      {.ops = {Op::kStickBreaking}, .causal = {false}},
      {.ops = {Op::kSoftmax}, .attend_current = {true}},
      {.seqlen_q = {1, 1}, .seqlen_kv = {2, 2}, .square_if_causal = true, .causal = {true}},
      {.padding = {KeyPadding::kNone}, .poison = {true}},
      {.seqlen_kv = {100, 200}, .max_work = 199},
  };
  for (const CaseDomain& d : empty) {
    ASSERT_TRUE(d.empty_reason()) << (&d - empty.data());
    EXPECT_FALSE(d.empty_reason()->empty());
  }
  EXPECT_EQ(empty[0].empty_reason(), "no dtype is left");
}

}  // namespace
}  // namespace attest
