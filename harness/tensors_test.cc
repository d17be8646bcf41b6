#include "harness/tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "harness/error.h"
#include "harness/materialise.h"

namespace attest {
namespace {

Inputs small_inputs() {
  Inputs in;
  in.problem = {.dtype = Dtype::kFloat16,
                .batch = 2,
                .num_heads_q = 4,
                .num_heads_kv = 2,
                .seqlen_q = 3,
                .seqlen_kv = 5,
                .head_dim = 8,
                .head_dim_v = 6};
  const auto half = at::TensorOptions().dtype(at::kHalf);
  in.q = at::ones({2, 4, 3, 8}, half);
  in.k = at::ones({2, 2, 5, 8}, half);
  in.v = at::ones({2, 2, 5, 6}, half);
  in.dout = at::ones({2, 4, 3, 6}, half);
  in.dlse = at::ones({2, 4, 3});
  in.key_padding_mask = at::ones({2, 5}, at::kBool);
  return in;
}

TEST(Inputs, what_contradicts_the_problem_is_named) {
  EXPECT_EQ(small_inputs().invalid_reason(), std::nullopt);
  EXPECT_EQ(small_inputs().forward_only().invalid_reason(), std::nullopt);
  EXPECT_FALSE(small_inputs().forward_only().backward());
  Inputs in = small_inputs();
  in.k = in.k.narrow(2, 0, 4);
  EXPECT_EQ(in.invalid_reason(), "k has shape [2, 2, 4, 8], the problem says [2, 2, 5, 8]");
  in = small_inputs();
  in.v = in.v.to(at::kFloat);
  EXPECT_NE(in.invalid_reason()->find("v has type"), std::string::npos);
  in = small_inputs();
  in.q = at::Tensor();
  EXPECT_EQ(in.invalid_reason(), "q is missing");
  in = small_inputs();
  in.dout = at::Tensor();
  EXPECT_EQ(in.invalid_reason(), "dlse is given without dout");
}

/// Every byte of the memory that `t` lies in.
at::Tensor memory(const at::Tensor& t) {
  return at::empty({0}, at::kByte).set_(t.storage(), 0, {static_cast<int64_t>(t.storage().nbytes())}, {1});
}

TEST(Inputs, a_copy_has_the_layout_and_every_byte_and_shares_memory_only_within_itself) {
  for (Layout layout : EnumSet<Layout>::all().members()) {
    const Inputs in = materialise(
        parse_case("B=2 Hq=2 Sq=5 Skv=5 D=4 fp16 dlse padding=some poison seed=1 layout=" + std::string(name_of(layout))));
    const Inputs copy = in.copy();
    for (auto field : {&Inputs::q, &Inputs::k, &Inputs::v, &Inputs::dout, &Inputs::dlse, &Inputs::key_padding_mask}) {
      EXPECT_TRUE(memory(copy.*field).equal(memory(in.*field))) << name_of(layout);
      EXPECT_EQ((copy.*field).strides(), (in.*field).strides());
      EXPECT_EQ((copy.*field).storage_offset(), (in.*field).storage_offset());
      EXPECT_EQ((copy.*field).scalar_type(), (in.*field).scalar_type());
      EXPECT_FALSE((copy.*field).is_alias_of(in.*field));
    }
    EXPECT_EQ(copy.q.is_alias_of(copy.v), layout == Layout::kPackedQkv);
  }
}

TEST(Inputs, moving_to_where_they_are_copies_nothing) {
  const Inputs in = small_inputs();
  EXPECT_TRUE(in.to(Device::kCpu).q.is_alias_of(in.q));
}

TEST(Dtypes, torch_types_and_ours_are_inverse) {
  for (Dtype dtype : EnumSet<Dtype>::all().members()) EXPECT_EQ(dtype_of(scalar_type(dtype)), dtype);
  EXPECT_THROW(dtype_of(at::kDouble), UsageError);
}

TEST(Outputs, each_quantity_is_its_own_tensor) {
  Outputs out;
  for (Quantity q : EnumSet<Quantity>::all().members()) out[q] = at::full({1}, static_cast<int>(q));
  EXPECT_TRUE(out.dv.defined());
  const Outputs copy = out.cpu();
  for (Quantity q : EnumSet<Quantity>::all().members()) EXPECT_EQ(copy[q].item<int>(), static_cast<int>(q));
}

TEST(Fresh, holds_nan_until_written_unless_switched_off) {
  EXPECT_TRUE(at::isnan(fresh({3, 2}, at::kBFloat16, Device::kCpu)).all().item<bool>());
  poison_fresh(false);
  EXPECT_EQ(fresh({3, 2}, at::kHalf, Device::kCpu).sizes(), at::IntArrayRef({3, 2}));
  poison_fresh(true);
}

TEST(LoadCuda, gives_the_same_answer_each_time_and_a_reason_without_a_gpu) {
  EXPECT_EQ(load_cuda(), load_cuda());
  if (!std::filesystem::exists("/dev/nvidiactl") && !std::filesystem::exists("/dev/dxg")) {
    EXPECT_TRUE(load_cuda().has_value());
  }
}

}  // namespace
}  // namespace attest
