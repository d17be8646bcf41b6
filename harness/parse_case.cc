#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <functional>
#include <map>
#include <sstream>

#include "harness/case.h"
#include "harness/error.h"

namespace attest {
namespace {

[[noreturn]] void misunderstood(std::string_view word, std::string_view why) {
  throw UsageError(fmt::format("in the case, the word '{}' is not understood: {}", word, why));
}

template <class T>
T number(std::string_view word, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    misunderstood(word, fmt::format("'{}' is not a number here", text));
  return value;
}

template <class E>
E enumerator(std::string_view word, std::string_view text) {
  E value{};
  if (from_name(text, value)) return value;
  misunderstood(word, fmt::format("expected one of {}", fmt::join(EnumNames<E>::kNames, ", ")));
}

/// What is read before the parts that depend on each other are settled.
struct Draft {
  Case c;
  std::optional<float> scale;
  std::optional<int64_t> head_dim_v;
};

float default_magnitude(LogitFill fill) {
  if (fill == LogitFill::kSaturated) return 88.0F;
  if (fill == LogitFill::kNegative || fill == LogitFill::kOneHot) return 8.0F;
  return 0.0F;
}

/// `saturated(88)`, or `saturated` for the usual magnitude.
void read_logits(std::string_view word, std::string_view text, Case& c) {
  const size_t open = text.find('(');
  c.logits = enumerator<LogitFill>(word, text.substr(0, open));
  c.magnitude = default_magnitude(c.logits);
  if (open == std::string_view::npos) return;
  if (text.back() != ')') misunderstood(word, "a closing parenthesis is missing");
  c.magnitude = number<float>(word, text.substr(open + 1, text.size() - open - 2));
}

using Reader = std::function<void(std::string_view word, std::string_view value, Draft&)>;

Reader size_into(int64_t AttentionProblem::*field) {
  return [field](auto word, auto value, Draft& d) { d.c.problem.*field = number<int64_t>(word, value); };
}

const std::map<std::string_view, Reader>& readers() {
  static const std::map<std::string_view, Reader> all = {
      {"op", [](auto w, auto v, Draft& d) { d.c.problem.op = enumerator<Op>(w, v); }},
      {"B", size_into(&AttentionProblem::batch)},
      {"Hq", size_into(&AttentionProblem::num_heads_q)},
      {"Hkv", size_into(&AttentionProblem::num_heads_kv)},
      {"Sq", size_into(&AttentionProblem::seqlen_q)},
      {"Skv", size_into(&AttentionProblem::seqlen_kv)},
      {"D", size_into(&AttentionProblem::head_dim)},
      {"Dv", [](auto w, auto v, Draft& d) { d.head_dim_v = number<int64_t>(w, v); }},
      {"scale",
       [](auto w, auto v, Draft& d) {
         if (v != "default") d.scale = number<float>(w, v);
       }},
      {"sequences", [](auto w, auto v, Draft& d) { d.c.sequences = enumerator<Sequences>(w, v); }},
      {"padding", [](auto w, auto v, Draft& d) { d.c.padding = enumerator<KeyPadding>(w, v); }},
      {"logits", [](auto w, auto v, Draft& d) { read_logits(w, v, d.c); }},
      {"values", [](auto w, auto v, Draft& d) { d.c.values = enumerator<ValueFill>(w, v); }},
      {"layout", [](auto w, auto v, Draft& d) { d.c.layout = enumerator<Layout>(w, v); }},
      {"seed", [](auto w, auto v, Draft& d) { d.c.seed = number<uint64_t>(w, v); }},
  };
  return all;
}

void read_flag(std::string_view word, Case& c) {
  if (word == "causal")
    c.problem.causal = true;
  else if (word == "attend_current")
    c.problem.attend_current = true;
  else if (word == "poison")
    c.poison = true;
  else if (word == "dlse")
    c.dlse = true;
  else if (!from_name(word, c.problem.dtype))
    misunderstood(word, "expected KEY=VALUE, fp16, bf16, fp32, causal, attend_current, poison or dlse");
}

void read_word(std::string_view word, Draft& draft) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return read_flag(word, draft.c);
  const auto reader = readers().find(word.substr(0, equals));
  if (reader == readers().end())
    misunderstood(word, "no such key; known are op B Hq Hkv Sq Skv D Dv scale sequences padding logits values layout seed");
  reader->second(word, word.substr(equals + 1), draft);
}

}  // namespace

Case parse_case(std::string_view text) {
  Draft draft;
  AttentionProblem& p = draft.c.problem;
  p.head_dim = 16;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) read_word(word, draft);
  p.head_dim_v = draft.head_dim_v.value_or(p.head_dim);
  p.softmax_scale = draft.scale.value_or(default_softmax_scale(p.head_dim));
  if (p.op == Op::kStickBreaking) p.causal = true;
  return draft.c;
}

}  // namespace attest
