// Tiers 0 and 1: which lane kernels run, and on which threads. Rows of a window are shared out by block, its keys by range:
// each element of dk and dv adds its rows in ascending order on one thread, so that neither threads nor windows change bits.
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <limits>
#include <thread>

#include "harness/error.h"
#include "oracles/certified/prepare.h"

namespace attest::certified {
namespace {

constexpr int64_t kKeysAtOnce = 4 * kKeyTile;  // what a thread takes
constexpr int64_t kBlocksPerThread = 2;

void require_ieee_arithmetic() {
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040, kRounding = 0x6000;
  const unsigned state = _mm_getcsr();
  if ((state & (kFlushToZero | kDenormalsAreZero)) != 0)
    throw Error("this thread takes subnormal numbers for zero (FTZ or DAZ is set in MXCSR), which the certified oracles' bounds "
                "do not allow: clear it with _mm_setcsr(_mm_getcsr() & ~0x8040). A library linked with -ffast-math sets it when "
                "it is loaded.");
  if ((state & kRounding) != 0)
    throw Error("this thread does not round to nearest, which the certified oracles need: call fesetround(FE_TONEAREST)");
}

const Lanes& lanes_of_this_machine() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd"))
    return avx512_lanes();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2_lanes();
  throw Error(*certified_unavailable());
}

void write_zeros(const GroupQuantity& to, double value) {
  std::fill_n(to.hi, to.elements, value);
  if (to.lo != nullptr) std::fill_n(to.lo, to.elements, 0.0);
  std::fill_n(to.radius, to.elements, 0.0);
  if (to.terms == nullptr) return;
  for (size_t source = 0; source < enum_size<ErrorSource>(); ++source)
    std::fill_n(to.terms + static_cast<int64_t>(source) * to.plane, to.elements, 0.0);
  std::fill_n(to.trivial, to.elements, std::numeric_limits<double>::infinity());
}

/// What holds without any visible key: everything that no kernel writes keeps this.
void write_rest(const GroupProblem& p, GroupReference& reference) {
  const double lse = p.op == Op::kSoftmax ? -std::numeric_limits<double>::infinity() : 1.0;
  write_zeros(reference[Quantity::kOut], 0);
  write_zeros(reference[Quantity::kLse], lse);
  if (!p.backward()) return;
  for (const Quantity q : {Quantity::kDq, Quantity::kDk, Quantity::kDv}) write_zeros(reference[q], 0);
}

class Evaluation {
 public:
  Evaluation(const LaneKernels& kernels, Tier tier, Preparation& prepared, int threads)
      : kernels_(kernels), prepared_(prepared), work_(prepared.work()),
        threads_(std::clamp<int64_t>(threads, 1, work_.blocks())), window_(threads_ == 1 ? 1 : kBlocksPerThread * threads_),
        counters_(2 * (work_.blocks() / window_ + 1) + 1), barrier_(threads_) {
    for (int64_t n = 0; n < window_; ++n) blocks_.push_back(prepared.new_block(tier));
  }

  void run() {
    std::vector<std::jthread> others;
    for (int64_t n = 1; n < threads_; ++n) others.emplace_back([this] { work(); });
    work();
  }

 private:
  void work() {
    size_t phase = 0;
    for (int64_t begin = 0; begin < work_.blocks(); begin += window_) {
      const int64_t count = std::min(window_, work_.blocks() - begin);
      share(counters_[phase++], count, 1, [&](int64_t n, int64_t) {
        prepared_.start(blocks_[n], begin + n);
        kernels_.rows(work_, blocks_[n]);
      });
      if (!work_.backward) continue;
      share(counters_[phase++], work_.keys_padded, kKeysAtOnce, [&](int64_t from, int64_t to) {
        for (int64_t n = 0; n < count; ++n) kernels_.keys(work_, blocks_[n], from, to);
      });
    }
    if (!work_.backward) return;
    share(counters_[phase], work_.keys_padded, kKeysAtOnce, [&](int64_t from, int64_t to) { kernels_.finish(work_, from, to); });
  }

  /// Calls task(begin, end) for pieces of [0, count), on whichever thread is free; then waits for all threads.
  template <class Task>
  void share(std::atomic<int64_t>& next, int64_t count, int64_t piece, const Task& task) {
    for (int64_t n = next.fetch_add(piece); n < count; n = next.fetch_add(piece)) task(n, std::min(n + piece, count));
    barrier_.arrive_and_wait();
  }

  const LaneKernels& kernels_;
  const Preparation& prepared_;
  const Work& work_;
  int64_t threads_, window_;
  std::vector<Block> blocks_;
  std::vector<std::atomic<int64_t>> counters_;
  std::barrier<> barrier_;
};

}  // namespace

void evaluate_with(const Lanes& lanes, Tier tier, const GroupProblem& problem, GroupReference& reference, int threads) {
  require_ieee_arithmetic();
  Preparation prepared(problem, reference);
  write_rest(problem, reference);
  if (prepared.work().keys == 0) return;
  const LaneKernels& kernels = lanes.of[static_cast<int>(problem.op)].of[static_cast<int>(tier)];
  Evaluation(kernels, tier, prepared, threads).run();
}

}  // namespace attest::certified

namespace attest {

std::optional<std::string> certified_unavailable() {
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return std::nullopt;
  return "this CPU has no AVX2 with FMA, which the certified oracles are compiled for";
}

void evaluate_double(const GroupProblem& problem, GroupReference& reference, int threads) {
  certified::evaluate_with(certified::lanes_of_this_machine(), certified::Tier::kDouble, problem, reference, threads);
}
void evaluate_double_double(const GroupProblem& problem, GroupReference& reference, int threads) {
  certified::evaluate_with(certified::lanes_of_this_machine(), certified::Tier::kDoubleDouble, problem, reference, threads);
}

}  // namespace attest
