#include "tools/bench/measure.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <new>

#include "harness/error.h"
#include "harness/tensors.h"

namespace attest::bench {
namespace {

/// A variant that still works, with what it gets and what it gave so far.
struct Subject {
  const KernelVariant* variant;
  Inputs inputs;
  std::function<double()> once;  // runs it, and says how long that took
  std::vector<double> times;
  std::optional<int64_t> peak_bytes;
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// libtorch's CPU allocator, and libraries, say it in words alone.
Outcome outcome_of(const std::string& text) {
  const bool memory = text.find("allocate memory") != std::string::npos || text.find("out of memory") != std::string::npos;
  return memory ? Outcome::kOutOfMemory : Outcome::kLaunchError;
}

std::optional<std::string> refusal(const Job& job, const Inputs& inputs, const KernelVariant& v) {
  if (job.pass == Pass::kGraph && job.device != Device::kCuda) return "CUDA graphs need a GPU";
  if (job.pass == Pass::kBoth && !v.produces.contains(Quantity::kDq)) return "it has no backward";
  if (auto why = v.domain.excludes(Case{.problem = inputs.problem})) return why;
  return v.refuses ? v.refuses(inputs) : std::nullopt;
}

class Measurement {
 public:
  Measurement(const Job& job, const Timer& timer, const Listener& listener) : job_(job), timer_(timer), listener_(listener) {}

  /// The outcome of `body` if it threw.
  void guarded(const KernelVariant& v, const std::function<void()>& body) {
    listener_.trying(v.name);
    try {
      body();
    } catch (const OutOfMemoryError& e) {
      fail(v, Outcome::kOutOfMemory, e.what());
    } catch (const c10::OutOfMemoryError& e) {
      fail(v, Outcome::kOutOfMemory, e.what_without_backtrace());
    } catch (const std::bad_alloc&) {
      fail(v, Outcome::kOutOfMemory, "the machine has no memory left for it");
    } catch (const c10::Error& e) {
      fail(v, outcome_of(e.what_without_backtrace()), e.what_without_backtrace());
    } catch (const std::exception& e) {
      fail(v, outcome_of(e.what()), e.what());
    }
  }

  void fail(const KernelVariant& v, Outcome outcome, const std::string& sentence) {
    listener_.row({job_.bench_case, job_.pass, v.name, outcome, first_line(sentence), {}});
    failed_.insert(v.name);
    if (outcome != Outcome::kUnsupported && !timer_.healthy())
      throw BrokenDevice(fmt::format("{} left the device unusable; the rest goes on in a new process", v.name));
  }

  bool works(const Subject& s) const { return !failed_.contains(s.variant->name); }

  void admit(Subject& s) {
    const KernelVariant& v = *s.variant;
    guarded(v, [&] {
      if (auto why = refusal(job_, s.inputs, v)) return fail(v, Outcome::kUnsupported, *why);
      const std::function<void()> run = [&s] { s.variant->run(s.inputs); };
      timer_.peak_bytes(run);
      s.peak_bytes = timer_.peak_bytes(run);
      s.once = job_.pass == Pass::kGraph ? timer_.captured(run) : [this, run] { return timer_.time(run); };
    });
  }

  void round(std::vector<Subject>& subjects) {
    for (Subject& s : subjects)
      if (works(s)) guarded(*s.variant, [&] { s.times.push_back(s.once()); });
  }

  void finish(const Subject& s) const {
    if (!works(s)) return;
    const Figures figures{percentile(s.times, 0.5), percentile(s.times, 0.1), percentile(s.times, 0.9), job_.repeats,
                          s.peak_bytes};
    listener_.row({job_.bench_case, job_.pass, s.variant->name, Outcome::kMeasured, "", figures});
  }

 private:
  const Job& job_;
  const Timer& timer_;
  const Listener& listener_;
  std::set<std::string> failed_;
};

}  // namespace

Inputs random_inputs(const BenchCase& c, Pass pass, Device device) {
  const AttentionProblem& p = c.problem;
  at::manual_seed(1);
  const auto options = at::TensorOptions().dtype(scalar_type(p.dtype)).device(torch_device(device));
  Inputs in{.problem = p};
  in.q = at::randn({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim}, options);
  in.k = at::randn({p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim}, options);
  in.v = at::randn({p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v}, options);
  if (c.values == Values::kLongRange) {  // one product of −8 / scale, to which the others add what is normally distributed
    in.q.select(3, 0).fill_(8);
    in.k.select(3, 0).fill_(-1 / p.softmax_scale);
  }
  if (pass != Pass::kBoth) return in;
  in.dout = at::randn({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, options);
  if (p.op == Op::kStickBreaking) in.dlse = at::randn({p.batch, p.num_heads_q, p.seqlen_q}, options.dtype(at::kFloat));
  return in;
}

Inputs as_operator(Op op, const Inputs& inputs) {
  if (op == inputs.problem.op) return inputs;
  Inputs other = inputs;
  other.problem.op = op;
  other.problem.attend_current = false;
  other.dlse = at::Tensor();
  return other;
}

void measure(const Job& job, const std::vector<const KernelVariant*>& variants, const Timer& timer, const Listener& listener) {
  Measurement session(job, timer, listener);
  Inputs inputs;
  std::vector<Subject> subjects;
  for (const KernelVariant* v : variants) subjects.push_back({.variant = v});
  for (Subject& s : subjects) {
    // Made by the first that needs them: when there is no memory for the inputs, every row says so.
    session.guarded(*s.variant, [&] {
      if (!inputs.q.defined()) inputs = random_inputs(job.bench_case, job.pass, job.device);
      s.inputs = as_operator(s.variant->op, inputs);
    });
    if (session.works(s)) session.admit(s);
  }
  for (int64_t r = 0; r < job.repeats; ++r) session.round(subjects);
  for (const Subject& s : subjects) session.finish(s);
}

}  // namespace attest::bench
