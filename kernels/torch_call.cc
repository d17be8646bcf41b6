#include "kernels/torch_call.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <vector>

#include "harness/error.h"
#include "harness/tensors.h"
#include "kernels/softmax/torch_sdpa.h"
#include "kernels/torch_grad.h"

namespace attest {
namespace {

enum class Role : uint8_t { kQ, kK, kV, kKeyPadding, kBias, kCausal, kTopLeft, kScale, kAttendCurrent, kGrouped, kDefault };

Role role_of(const std::string& argument) {
  static const std::map<std::string, Role> roles{{"q", Role::kQ},
                                                 {"query", Role::kQ},
                                                 {"k", Role::kK},
                                                 {"key", Role::kK},
                                                 {"v", Role::kV},
                                                 {"value", Role::kV},
                                                 {"scale", Role::kScale},
                                                 {"softmax_scale", Role::kScale},
                                                 {"key_padding_mask", Role::kKeyPadding},
                                                 {"attn_mask", Role::kBias},
                                                 {"attn_bias", Role::kBias},
                                                 {"causal", Role::kCausal},
                                                 {"is_causal", Role::kTopLeft},
                                                 {"attend_current", Role::kAttendCurrent},
                                                 {"enable_gqa", Role::kGrouped}};
  const auto it = roles.find(argument);
  return it == roles.end() ? Role::kDefault : it->second;
}

/// The operator and what each of its arguments is for.
struct Binding {
  c10::OperatorHandle handle;
  std::vector<Role> roles;
  std::optional<size_t> second;  // index of lse or rem among the results

  bool has(Role role) const { return std::find(roles.begin(), roles.end(), role) != roles.end(); }
};

/// All the operators called `name`, with their overloads' names.
std::vector<std::string> overloads_of(const std::string& name) {
  std::vector<std::string> found;
  for (const c10::OperatorName& o : c10::Dispatcher::singleton().getAllOpNames())
    if (o.name == name) found.push_back(o.overload_name.empty() ? name : name + "." + o.overload_name);
  std::sort(found.begin(), found.end());
  return found;
}

c10::OperatorHandle find_operator(const std::string& qualified_name) {
  const auto colons = qualified_name.find("::");
  if (colons == std::string::npos)
    throw UsageError(fmt::format("'{}' names no Torch operator: write namespace::operator", qualified_name));
  const auto dot = qualified_name.find('.', colons);
  const std::string overload = dot == std::string::npos ? "" : qualified_name.substr(dot + 1);
  const auto handle = c10::Dispatcher::singleton().findSchema({qualified_name.substr(0, dot), overload});
  if (handle) return *handle;
  const std::vector<std::string> overloads = overloads_of(qualified_name.substr(0, dot));
  if (overloads.empty())
    throw UsageError(fmt::format("Torch knows no operator {}; --load FILE.so brings operators in", qualified_name));
  throw UsageError(fmt::format("Torch knows no operator {} but overloads of it: {}", qualified_name, fmt::join(overloads, ", ")));
}

/// lse, rem or logsumexp among the results after out.
std::optional<size_t> second_result(const c10::FunctionSchema& schema) {
  for (size_t i = 1; i < schema.returns().size(); ++i)
    for (const char* name : {"lse", "rem", "logsumexp", "log_sumexp"})
      if (schema.returns()[i].name() == name) return i;
  return std::nullopt;
}

bool can_be_left_out(const c10::Argument& argument) {
  return argument.default_value().has_value() || argument.type()->kind() == c10::TypeKind::OptionalType;
}

Binding bind(const std::string& qualified_name) {
  Binding binding{.handle = find_operator(qualified_name), .roles = {}, .second = {}};
  const c10::FunctionSchema& schema = binding.handle.schema();
  for (const c10::Argument& argument : schema.arguments()) {
    const Role role = role_of(argument.name());
    if (role == Role::kDefault && !can_be_left_out(argument))
      throw UsageError(fmt::format("{} has the argument '{}', which Attest can't fill and which has no default", qualified_name,
                                   argument.name()));
    binding.roles.push_back(role);
  }
  for (const auto& [role, name] : {std::pair{Role::kQ, "q"}, {Role::kK, "k"}, {Role::kV, "v"}})
    if (!binding.has(role)) throw UsageError(fmt::format("{} has no argument called {}", qualified_name, name));
  if (schema.returns().empty() || schema.returns()[0].type()->kind() != c10::TypeKind::TensorType)
    throw UsageError(fmt::format("{} does not return a tensor first", qualified_name));
  binding.second = second_result(schema);
  return binding;
}

c10::IValue value_of(Role role, const c10::Argument& argument, const Binding& binding, const Inputs& in,
                     const sdpa::Masking& masking) {
  switch (role) {
    case Role::kKeyPadding:
      return in.key_padding_mask.defined() ? c10::IValue(in.key_padding_mask) : c10::IValue();
    case Role::kBias:
      return masking.bias ? c10::IValue(*masking.bias) : c10::IValue();
    case Role::kCausal:
    case Role::kTopLeft:
      return binding.has(Role::kBias) ? masking.is_causal : in.problem.causal;
    case Role::kScale:
      return static_cast<double>(in.problem.softmax_scale);
    case Role::kAttendCurrent:
      return in.problem.attend_current;
    case Role::kGrouped:
      return in.problem.group() > 1;
    default:
      return argument.default_value().value_or(c10::IValue());
  }
}

std::vector<at::Tensor> call(const Binding& binding, const Inputs& in, const at::Tensor& q, const at::Tensor& k,
                             const at::Tensor& v) {
  sdpa::Masking masking;
  if (binding.has(Role::kBias))
    masking =
        sdpa::masking(in, -std::numeric_limits<double>::infinity(), binding.has(Role::kCausal) || binding.has(Role::kTopLeft));
  const auto& arguments = binding.handle.schema().arguments();
  torch::jit::Stack stack;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Role role = binding.roles[i];
    if (role == Role::kQ)
      stack.emplace_back(q);
    else if (role == Role::kK)
      stack.emplace_back(k);
    else if (role == Role::kV)
      stack.emplace_back(v);
    else
      stack.push_back(value_of(role, arguments[i], binding, in, masking));
  }
  binding.handle.callBoxed(stack);
  return {stack.at(0).toTensor(), binding.second ? stack.at(*binding.second).toTensor() : at::Tensor()};
}

CaseDomain domain_of(const Binding& binding, Op op) {
  const bool masks = binding.has(Role::kKeyPadding) || binding.has(Role::kBias);
  CaseDomain domain{.ops = {op}};
  if (!masks) domain.padding = {KeyPadding::kNone};
  if (!binding.has(Role::kKeyPadding)) domain.poison = {false};  // a bias is added: 0·NaN is NaN
  if (op == Op::kStickBreaking) {
    if (!binding.has(Role::kAttendCurrent)) domain.attend_current = {false};
  } else if (binding.has(Role::kTopLeft) && !binding.has(Role::kBias)) {
    domain.square_if_causal = true;
  } else if (!binding.has(Role::kTopLeft) && !binding.has(Role::kCausal) && !binding.has(Role::kBias)) {
    domain.causal = {false};
  }
  const bool differentiable_second =
      binding.second && binding.handle.schema().returns()[*binding.second].name().find("sum") == std::string::npos;
  if (!differentiable_second) domain.dlse = {false};
  return domain;
}

std::optional<std::string> refuse(const Binding& binding, const Inputs& in) {
  if (!binding.has(Role::kScale) && in.problem.softmax_scale != default_softmax_scale(in.problem.head_dim))
    return "the operator takes no scale: only 1/sqrt(D) can be run";
  return std::nullopt;
}

ToleranceContract contract() {
  return {.tolerance = forward_error(2),
          .arithmetic = {.accumulate = Arithmetic::Accumulate::kMatrixUnit,
                         .operands_rounded = true,
                         .p_in_fp16_unscaled = true,
                         .p_from_lse = true},
          .reason = "nothing is known of the operator: the loosest arithmetic that a sound kernel uses"};
}

}  // namespace

KernelVariant torch_operator_variant(const std::string& qualified_name, Device device) {
  const Binding binding = bind(qualified_name);
  const bool stick = binding.has(Role::kAttendCurrent) || qualified_name.find("stick") != std::string::npos;
  KernelVariant v;
  v.name = "torch:" + qualified_name;
  v.op = stick ? Op::kStickBreaking : Op::kSoftmax;
  v.device = device;
  v.summary = fmt::format("the Torch operator {}, backward through autograd", qualified_name);
  v.domain = domain_of(binding, v.op);
  if (!binding.second) v.produces = v.produces.without(Quantity::kLse);
  v.contract = contract();
  v.promises = {"returns", "agrees_with_oracle.forward", "agrees_with_oracle.gradients", "repeat_run.forward",
                "repeat_run.gradients"};
  v.refuses = [binding](const Inputs& in) { return refuse(binding, in); };
  v.run = [binding](const Inputs& in) {
    return run_with_autograd(
        in, [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) { return call(binding, in, q, k, v); });
  };
  return v;
}

void load_operators(const std::string& so_path) {
  if (!std::filesystem::exists(so_path)) throw UsageError(fmt::format("--load {}: there is no such file", so_path));
  const std::string absolute = std::filesystem::absolute(so_path).string();
  if (dlopen(absolute.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
    throw UsageError(fmt::format("--load {}: {}", so_path, dlerror()));
}

}  // namespace attest
