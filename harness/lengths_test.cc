#include "harness/lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/edit.h"
#include "harness/error.h"
#include "harness/generate.h"
#include "harness/materialise.h"
#include "harness/slice.h"
#include "harness/tensors.h"

namespace attest {
namespace {

Case packed_case(uint64_t seed = 1) {
  Case c = parse_case("B=4 Hq=4 Hkv=2 Sq=5 Skv=9 D=8 dlse sequences=packed");
  c.seed = seed;
  return c;
}

std::vector<Case> cases_of_kinds(EnumSet<Sequences> kinds) {
  std::vector<Case> cases;
  for (uint64_t n = 0; n < 1000; ++n) cases.push_back(generate(1, n, {.sequences = kinds, .max_work = 1 << 16}));
  return cases;
}

int share(const std::vector<Case>& cases, const std::function<bool(const Case&)>& holds) {
  return static_cast<int>(100 * std::ranges::count_if(cases, holds) / static_cast<int64_t>(cases.size()));
}

bool any_sequence(const Case& c, const std::function<bool(const Sequence&)>& holds) { return std::ranges::any_of(sequences_of(c), holds); }

TEST(Lengths, a_fifth_of_the_cases_have_them_in_each_kind) {
  const auto cases = cases_of_kinds(EnumSet<Sequences>::all());
  EXPECT_NEAR(share(cases, [](const Case& c) { return c.sequences == Sequences::kPacked; }), 10, 3);
  EXPECT_NEAR(share(cases, [](const Case& c) { return c.sequences == Sequences::kLengths; }), 10, 3);
  EXPECT_EQ(share(cases_of_kinds({Sequences::kPacked}), [](const Case& c) { return c.sequences == Sequences::kPacked; }), 100);
  EXPECT_EQ(share(cases_of_kinds({Sequences::kWhole}), [](const Case& c) { return c.sequences == Sequences::kWhole; }), 100);
}

TEST(Lengths, that_break_kernels_are_frequent) {
  for (const Sequences kind : {Sequences::kLengths, Sequences::kPacked}) {
    const auto cases = cases_of_kinds({kind});
    EXPECT_GE(share(cases, [](const Case& c) { return c.problem.batch > 1; }), 60);
    EXPECT_GE(share(cases, [](const Case& c) { return any_sequence(c, [](const Sequence& s) { return s.n_kv == 0; }); }), 10);
    EXPECT_GE(share(cases, [](const Case& c) { return any_sequence(c, [](const Sequence& s) { return s.n_kv == 1; }); }), 15);
    EXPECT_GE(share(cases, [](const Case& c) { return any_sequence(c, [](const Sequence& s) { return s.n_q == 0; }); }), 3);
    EXPECT_GE(share(cases, [](const Case& c) { return any_sequence(c, [](const Sequence& s) { return s.n_q > s.n_kv; }); }), 10);
    EXPECT_GE(share(cases, [](const Case& c) { return any_sequence(c, [&](const Sequence& s) { return s.n_kv == c.problem.seqlen_kv; }); }), 30);
    EXPECT_GE(share(cases, [](const Case& c) { return c.poison; }), 20);
  }
}

TEST(Lengths, make_inputs_that_are_valid_and_inside_the_domain_of_the_case) {
  for (const Case& c : cases_of_kinds({Sequences::kLengths, Sequences::kPacked})) {
    const Inputs in = materialise(c);
    ASSERT_EQ(in.invalid_reason(), std::nullopt) << c;
    ASSERT_EQ(in.kind, c.sequences);
    const AttentionProblem extent = in.extent();
    ASSERT_LE(extent.seqlen_q, c.problem.seqlen_q) << c;
    ASSERT_LE(extent.seqlen_kv, c.problem.seqlen_kv) << c;
    ASSERT_EQ(extent.batch, c.problem.batch) << c;
  }
}

TEST(Lengths, a_case_of_fewer_sequences_has_the_first_ones) {
  Case more = packed_case(), fewer = more;
  fewer.problem.batch = 2;
  more.problem.batch = 9;
  const auto all = sequences_of(more), first = sequences_of(fewer);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), all.begin()));
}

TEST(Packed, a_sequence_holds_the_data_of_the_batch_element_of_that_number) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Case whole = packed_case(seed);
    whole.sequences = Sequences::kWhole;
    const Inputs batch = materialise(whole), in = materialise(packed_case(seed));
    for (size_t n = 0; n < in.sequences.size(); ++n) {
      const Sequence& s = in.sequences[n];
      const auto b = static_cast<int64_t>(n);
      EXPECT_TRUE(in.q[0].narrow(1, s.q_begin, s.n_q).equal(batch.q[b].narrow(1, 0, s.n_q)));
      EXPECT_TRUE(in.v[0].narrow(1, s.kv_begin, s.n_kv).equal(batch.v[b].narrow(1, 0, s.n_kv)));
      EXPECT_TRUE(in.dlse[0].narrow(1, s.q_begin, s.n_q).equal(batch.dlse[b].narrow(1, 0, s.n_q)));
    }
  }
}

TEST(Packed, tensors_are_views_of_one_row_after_another_in_every_layout) {
  EXPECT_TRUE(materialise(packed_case()).q[0].transpose(0, 1).is_contiguous());
  const Inputs plain = materialise(packed_case());
  for (Layout layout : EnumSet<Layout>::all().members()) {
    Case c = packed_case();
    c.layout = layout;
    const Inputs in = materialise(c);
    EXPECT_EQ(in.invalid_reason(), std::nullopt) << c;
    EXPECT_TRUE(in.q.equal(plain.q) && in.k.equal(plain.k) && in.v.equal(plain.v) && in.dout.equal(plain.dout)) << c;
  }
  const Inputs qkv = materialise(parse_case("B=3 Hq=2 Sq=6 Skv=6 D=4 sequences=packed layout=packed-qkv seed=5"));
  EXPECT_EQ(qkv.q.is_alias_of(qkv.k), qkv.problem.seqlen_q == qkv.problem.seqlen_kv);
}

TEST(Lengths, poison_stands_in_the_rows_of_no_sequence_and_nowhere_else) {
  for (const char* words : {"sequences=packed", "sequences=lengths", "sequences=lengths layout=padded"})
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Case c = parse_case(std::string("B=3 Hq=2 Hkv=2 Sq=4 Skv=7 D=4 dlse poison ") + words);
      c.seed = seed;
      const Inputs in = materialise(c);
      const Outside rows = outside_sequences(in);
      const auto wild = [](const at::Tensor& t) { return at::isfinite(t).logical_not().logical_or(t.abs() > 1e29).any(3).any(1); };
      for (const at::Tensor& t : {in.q, in.dout, in.dlse.unsqueeze(3)}) EXPECT_TRUE(wild(t).equal(rows.queries)) << c;
      for (const at::Tensor& t : {in.k, in.v}) EXPECT_TRUE(wild(t).equal(rows.keys)) << c;
    }
}

Inputs small_packed() {
  Inputs in = materialise(parse_case("Sq=6 Skv=9 D=4 dlse seed=3"));
  in.kind = Sequences::kPacked;
  in.sequences = packed({0, 2, 2, 5}, {0, 4, 5, 9});
  return in;
}

TEST(Sequences, are_told_to_kernels_as_32_bit_integers) {
  const Inputs in = small_packed();
  EXPECT_TRUE(in.cu_seqlens_q().equal(at::tensor({0, 2, 2, 5}, at::kInt)));
  EXPECT_TRUE(in.cu_seqlens_kv().equal(at::tensor({0, 4, 5, 9}, at::kInt)));
  Inputs cache = materialise(parse_case("B=2 Sq=2 Skv=9"));
  cache.kind = Sequences::kLengths;
  cache.sequences = with_lengths({2, 1}, {0, 7});
  EXPECT_TRUE(cache.seqlens_q().equal(at::tensor({2, 1}, at::kInt)));
  EXPECT_TRUE(cache.seqlens_kv().equal(at::tensor({0, 7}, at::kInt)));
  EXPECT_EQ(in.extent().batch, 3);
  EXPECT_EQ(in.extent().seqlen_q, 3);
  EXPECT_EQ(in.extent().seqlen_kv, 4);
}

TEST(Sequences, that_do_not_fit_their_tensors_are_refused_with_a_reason) {
  Inputs in = small_packed();
  EXPECT_EQ(in.invalid_reason(), std::nullopt);
  in.sequences = packed({0, 2, 1, 5}, {0, 4, 5, 9});
  EXPECT_EQ(in.invalid_reason(), "sequence 1 has -1 queries");
  in.sequences = packed({0, 2, 2, 7}, {0, 4, 5, 9});
  EXPECT_EQ(in.invalid_reason(), "sequence 2 has queries [2, 7) of tensors with 6");
  in.sequences = packed({0, 2, 2, 5}, {0, 4, 5, 9});
  in.sequences[1].kv_begin = 3;
  EXPECT_EQ(in.invalid_reason(), "sequence 1 begins at key 3, not at 4");
  in.sequences.clear();
  EXPECT_EQ(in.invalid_reason(), "packed tensors hold no sequence");
  in.kind = Sequences::kLengths;
  EXPECT_EQ(in.invalid_reason(), "0 lengths are given for 1 batch elements");
  EXPECT_THROW(packed({1, 2}, {0, 1}), UsageError);
  EXPECT_THROW(packed({0, 2}, {0, 1, 2}), UsageError);
  EXPECT_THROW(with_lengths({1}, {1, 2}), UsageError);
}

TEST(Sequences, are_kept_by_copies_and_cut_with_the_rows) {
  const Inputs in = small_packed();
  EXPECT_EQ(in.copy().sequences, in.sequences);
  EXPECT_EQ(in.forward_only().kind, Sequences::kPacked);
  EXPECT_EQ(apply_edit(in, "keep queries 1 3").sequences, packed({0, 1, 1, 3}, {0, 4, 5, 9}));
  EXPECT_EQ(apply_edit(in, "keep keys 4 5").sequences, packed({0, 2, 2, 5}, {0, 0, 1, 5}));
  const Inputs last = apply_edit(in, "keep batch 1 2");
  EXPECT_EQ(last.sequences, packed({0, 0, 3}, {0, 1, 5}));
  EXPECT_TRUE(last.q.equal(in.q.narrow(2, 2, 3)) && last.k.equal(in.k.narrow(2, 4, 5)));
  EXPECT_EQ(apply_edit(in, "drop sequences").kind, Sequences::kWhole);
  EXPECT_THROW(apply_edit(in, "keep batch 1 1"), UsageError);  // it has no query
  for (const std::string& edit : edit_candidates(in, true)) {
    if (edit == "keep batch 0 4") continue;
    Inputs out;
    try {
      out = apply_edit(in, edit);
    } catch (const UsageError&) {
      continue;  // nothing would be left
    }
    EXPECT_EQ(out.invalid_reason(), std::nullopt) << edit;
  }
}

TEST(Sequences, of_a_cache_go_with_their_batch_elements) {
  Inputs cache = materialise(parse_case("B=3 Sq=2 Skv=9"));
  cache.kind = Sequences::kLengths;
  cache.sequences = with_lengths({2, 1, 2}, {0, 7, 9});
  EXPECT_EQ(slice_batch(cache, 1, 2).sequences, with_lengths({1, 2}, {7, 9}));
  EXPECT_EQ(gather_batch(cache, {2, 0, 2}).sequences, with_lengths({2, 2, 2}, {9, 0, 9}));
  EXPECT_EQ(narrow_keys(cache, 0, 8).sequences, with_lengths({2, 1, 2}, {0, 7, 8}));
  EXPECT_EQ(narrow_keys(cache, 7, 2).sequences, with_lengths({2, 1, 2}, {0, 0, 2}));
  EXPECT_THROW(slice_queries(cache, 0, 1), UsageError);
}

TEST(Sequences, run_one_after_another_and_leave_the_rest_as_rows_without_a_key) {
  const Inputs in = small_packed();
  const Outputs out = run_each_sequence(in, [](const Inputs& one) {
    EXPECT_EQ(one.kind, Sequences::kWhole);
    EXPECT_EQ(one.invalid_reason(), std::nullopt);
    return Outputs{one.dout + static_cast<double>(one.problem.seqlen_kv), one.dlse, one.q, one.k, one.v};
  });
  EXPECT_TRUE(out.out.narrow(2, 0, 5).equal(in.dout.narrow(2, 0, 5) + 4.0));
  EXPECT_TRUE(out.out.narrow(2, 5, 1).eq(0).all().item<bool>());
  EXPECT_TRUE(out.lse.narrow(2, 5, 1).eq(-INFINITY).all().item<bool>());
  EXPECT_TRUE(out.dk.narrow(2, 4, 1).eq(0).all().item<bool>());  // of the sequence without queries
  EXPECT_TRUE(out.dk.narrow(2, 5, 4).equal(in.k.narrow(2, 5, 4)));
}

}  // namespace
}  // namespace attest
