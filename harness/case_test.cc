#include "harness/case.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "harness/error.h"

namespace attest {
namespace {

template <class E>
rc::Gen<E> any() {
  return rc::gen::map(rc::gen::inRange<size_t>(0, enum_size<E>()), [](size_t i) { return static_cast<E>(i); });
}

float any_float() { return static_cast<float>(*rc::gen::inRange<int>(-100000, 100000)) / 1234.5F; }

Case any_case() {
  Case c;
  AttentionProblem& p = c.problem;
  p.op = *any<Op>();
  p.dtype = *any<Dtype>();
  p.causal = p.op == Op::kStickBreaking || *any<bool>();
  p.attend_current = p.op == Op::kStickBreaking && *any<bool>();
  for (int64_t* size : {&p.batch, &p.num_heads_kv, &p.seqlen_q, &p.seqlen_kv, &p.head_dim, &p.head_dim_v})
    *size = *rc::gen::inRange<int64_t>(1, 70000);
  p.num_heads_q = p.num_heads_kv * *rc::gen::inRange<int64_t>(1, 9);
  p.softmax_scale = *any<bool>() ? default_softmax_scale(p.head_dim) : any_float();
  c.padding = *any<KeyPadding>();
  c.poison = *any<bool>();
  c.logits = *any<LogitFill>();
  c.magnitude = *any<bool>() ? 0.0F : std::abs(any_float());
  c.values = *any<ValueFill>();
  c.dlse = *any<bool>();
  c.layout = *any<Layout>();
  c.seed = *rc::gen::arbitrary<uint64_t>();
  return c;
}

RC_GTEST_PROP(CaseText, parse_is_the_inverse_of_print, ()) {
  const Case c = any_case();
  RC_ASSERT(parse_case(to_string(c)) == c);
}

RC_GTEST_PROP(CaseText, equal_text_means_equal_hash_and_other_text_another_hash, ()) {
  const Case c = any_case();
  Case other = c;
  other.seed ^= 1;
  RC_ASSERT(hash_of(c) == hash_of(parse_case(to_string(c))));
  RC_ASSERT(hash_of(c) != hash_of(other));
}

TEST(CaseText, prints_sizes_always_and_defaults_never) {
  const std::string text = "op=softmax B=1 Hq=2 Hkv=1 Sq=4 Skv=65 D=16 Dv=16 bf16";
  EXPECT_EQ(to_string(parse_case(text)), text);
  EXPECT_EQ(to_string(parse_case(text + " scale=default padding=none seed=0")), text);
  EXPECT_EQ(to_string(parse_case(text + " scale=0.5 logits=saturated(88)")), text + " scale=0.5 logits=saturated(88)");
}

TEST(CaseText, missing_words_take_their_default) {
  const Case c = parse_case("fp16 Hq=4  Sq=3");
  EXPECT_EQ(to_string(c), "op=softmax B=1 Hq=4 Hkv=1 Sq=3 Skv=1 D=16 Dv=16 fp16");
  EXPECT_EQ(c.problem.softmax_scale, 0.25F);
  EXPECT_TRUE(parse_case("op=stickbreaking").problem.causal);
  EXPECT_EQ(parse_case("D=8").problem.head_dim_v, 8);
  EXPECT_EQ(parse_case("logits=saturated").magnitude, 88.0F);
}

TEST(CaseText, a_word_it_does_not_understand_is_named) {
  for (const std::string word : {"B=x", "B=1.5", "B=", "colour=red", "fp8", "padding=upper", "logits=saturated(8", "seed=-1"}) {
    try {
      parse_case("Sq=2 " + word);
      ADD_FAILURE() << word << " was accepted";
    } catch (const UsageError& e) {
      EXPECT_NE(std::string(e.what()).find("'" + word + "'"), std::string::npos) << e.what();
    }
  }
}

TEST(CaseText, the_hash_is_the_same_on_every_machine) { EXPECT_EQ(hash_of(Case{}), 761869586787587786U) << to_string(Case{}); }

TEST(CaseValidity, every_refusal_has_a_reason) {
  EXPECT_EQ(parse_case("").invalid_reason(), std::nullopt);
  EXPECT_EQ(parse_case("padding=right poison logits=saturated(88) scale=-1").invalid_reason(), std::nullopt);
  std::set<std::string> reasons;
  for (const char* text :
       {"B=0", "Hq=3 Hkv=2", "poison", "logits=saturated(0)", "logits=normal(3)", "logits=negative(8) scale=0", "B=99999999999",
        "logits=saturated(-1)", "attend_current", "scale=inf", "scale=1e30", "B=1000000 Hq=1000000 Sq=1000000 Skv=1000000"}) {
    const auto reason = parse_case(text).invalid_reason();
    ASSERT_TRUE(reason) << text;
    EXPECT_TRUE(reasons.insert(*reason).second) << text << ": " << *reason;
  }
}

}  // namespace
}  // namespace attest
