#include "harness/edit.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <sstream>

#include "harness/error.h"
#include "harness/slice.h"

namespace attest {
namespace {

[[noreturn]] void refuse(const std::string& edit, const std::string& why) {
  throw UsageError(fmt::format("cannot apply the edit '{}': {}", edit, why));
}

at::Tensor* member(Inputs& in, const std::string& name) {
  if (name == "q") return &in.q;
  if (name == "k") return &in.k;
  if (name == "v") return &in.v;
  if (name == "dout") return &in.dout;
  if (name == "dlse") return &in.dlse;
  if (name == "key_padding_mask") return &in.key_padding_mask;
  return nullptr;
}

/// A plainer tensor of the same layout; bytes between the rows are kept.
at::Tensor rewritten(const at::Tensor& t, const at::Tensor& values) {
  at::Tensor storage =
      at::empty({0}, t.options()).set_(t.storage(), 0, {static_cast<int64_t>(t.storage().nbytes() / t.itemsize())}, {1}).clone();
  at::Tensor out = storage.as_strided(t.sizes(), t.strides(), t.storage_offset());
  at::Tensor written = out, source = values.expand(t.sizes());
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (t.stride(d) != 0) continue;  // expanded: its elements are one
    written = written.narrow(d, 0, 1);
    source = source.narrow(d, 0, 1);
  }
  written.copy_(source);
  return out;
}

/// Toward zero to a power of two; NaN, infinities and zeros stay.
at::Tensor to_power_of_two(const at::Tensor& t) {
  at::Tensor x = t.to(at::kDouble).contiguous().clone();
  double* p = x.data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i)
    if (std::isfinite(p[i]) && p[i] != 0) p[i] = std::copysign(std::ldexp(1.0, std::ilogb(p[i])), p[i]);
  return x.to(t.scalar_type());
}

Inputs keep_head(const Inputs& in, int64_t head) {
  Inputs out = in;
  const int64_t group = in.problem.group();
  out.problem.num_heads_kv = 1;
  out.problem.num_heads_q = group;
  out.q = in.q.narrow(1, head * group, group);
  out.k = in.k.narrow(1, head, 1);
  out.v = in.v.narrow(1, head, 1);
  if (in.dout.defined()) out.dout = in.dout.narrow(1, head * group, group);
  if (in.dlse.defined()) out.dlse = in.dlse.narrow(1, head * group, group);
  return out;
}

Inputs keep_dims(const Inputs& in, const std::string& what, int64_t count) {
  Inputs out = in;
  if (what == "dims") {
    out.problem.head_dim = count;
    out.q = in.q.narrow(3, 0, count);
    out.k = in.k.narrow(3, 0, count);
  } else {
    out.problem.head_dim_v = count;
    out.v = in.v.narrow(3, 0, count);
    if (in.dout.defined()) out.dout = in.dout.narrow(3, 0, count);
  }
  return out;
}

Inputs keep(const Inputs& in, const std::string& edit, std::istringstream& words) {
  std::string what;
  int64_t begin = -1, count = 1;
  words >> what >> begin;
  const AttentionProblem& p = in.problem;
  const bool range = what == "batch" || what == "queries" || what == "keys";
  if (range && !(words >> count)) refuse(edit, "it needs a begin and a count");
  const int64_t size = what == "batch"     ? in.extent().batch
                       : what == "queries" ? p.seqlen_q
                       : what == "keys"    ? p.seqlen_kv
                       : what == "head"    ? p.num_heads_kv
                       : what == "dims"    ? p.head_dim
                       : what == "dims_v"  ? p.head_dim_v
                                           : -1;
  if (size < 0) refuse(edit, "there is nothing called '" + what + "'");
  const bool dims = what == "dims" || what == "dims_v";
  if (dims) count = std::exchange(begin, 0);
  if (begin < 0 || count < 1 || begin + count > size) refuse(edit, fmt::format("the inputs have {} {}", size, what));
  if (what == "batch") return slice_batch(in, begin, count);
  if (what == "queries") return narrow_queries(in, begin, count);
  if (what == "keys") return narrow_keys(in, begin, count);
  if (what == "head") return keep_head(in, begin);
  return keep_dims(in, what, count);
}

void add_parts(const Inputs& in, std::vector<std::string>& out) {
  const AttentionProblem& p = in.problem;
  const auto smaller = [](int64_t size) {  // biggest jump first
    std::set<int64_t> counts;
    for (int64_t count : {int64_t{1}, size / 2, size - 1})
      if (count >= 1 && count < size) counts.insert(count);
    return counts;
  };
  const auto parts = [&](const char* what, int64_t size) {
    for (int64_t count : smaller(size)) {
      out.push_back(fmt::format("keep {} 0 {}", what, count));
      out.push_back(fmt::format("keep {} {} {}", what, size - count, count));
    }
  };
  parts("batch", in.extent().batch);
  for (int64_t h = 0; p.num_heads_kv > 1 && h < p.num_heads_kv; ++h) out.push_back(fmt::format("keep head {}", h));
  parts("queries", p.seqlen_q);
  parts("keys", p.seqlen_kv);
  for (int64_t count : smaller(p.head_dim)) out.push_back(fmt::format("keep dims {}", count));
  for (int64_t count : smaller(p.head_dim_v)) out.push_back(fmt::format("keep dims_v {}", count));
}

}  // namespace

Inputs apply_edit(const Inputs& in, const std::string& edit) {
  std::istringstream words(edit);
  std::string verb, name;
  words >> verb;
  if (verb == "keep") return keep(in, edit, words);
  words >> name;
  Inputs out = in;
  if (verb == "drop" && name == "sequences") {
    out.kind = Sequences::kWhole;
    out.sequences.clear();
    return out;
  }
  at::Tensor* t = member(out, name);
  if (t == nullptr) refuse(edit, "there is no tensor '" + name + "'");
  if (!t->defined()) refuse(edit, "these inputs have no " + name);
  if (verb == "drop" && (name == "dlse" || name == "key_padding_mask"))
    *t = at::Tensor();
  else if (name == "key_padding_mask")
    refuse(edit, "a mask can only be dropped");
  else if (verb == "zero")
    *t = rewritten(*t, at::zeros({}, t->options()));
  else if (verb == "ones")
    *t = rewritten(*t, at::ones({}, t->options()));
  else if (verb == "pow2")
    *t = rewritten(*t, to_power_of_two(*t));
  else
    refuse(edit, "known verbs are zero, ones, pow2, drop, keep");
  return out;
}

std::vector<std::string> edit_candidates(const Inputs& in, bool structure) {
  std::vector<std::string> out;
  if (structure && in.kind != Sequences::kWhole) out.push_back("drop sequences");
  if (structure) add_parts(in, out);
  if (in.dlse.defined()) out.push_back("drop dlse");
  if (structure && in.key_padding_mask.defined()) out.push_back("drop key_padding_mask");
  for (const char* verb : {"zero", "ones", "pow2"})
    for (const char* name : {"dlse", "dout", "v", "k", "q"}) {
      Inputs copy = in;
      if (member(copy, name)->defined()) out.push_back(fmt::format("{} {}", verb, name));
    }
  return out;
}

}  // namespace attest
