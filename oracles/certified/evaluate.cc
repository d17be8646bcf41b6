// Tiers 0 and 1: which lane kernels run, and on which threads. Rows of a window are shared out by block, its keys by range:
// each element of dk and dv adds its rows in ascending order on one thread at a time, so that neither threads nor windows change
// bits.
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "harness/error.h"
#include "oracles/certified/prepare.h"
#include "oracles/certified/threads.h"

namespace attest::certified {
namespace {

constexpr int64_t kKeysAtOnce = kKeyTile;  // what a thread takes
constexpr int64_t kLongRow = 4096;         // keys: of longer rows fewer are in flight, for memory's sake

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

/// What holds without any visible key: the keys that are left out, and the terms that an operator does not have, keep this.
void write_rest(const GroupProblem& p, GroupReference& reference) {
  const double lse = p.op == Op::kSoftmax ? -std::numeric_limits<double>::infinity() : 1.0;
  write_zeros(reference[Quantity::kOut], 0);
  write_zeros(reference[Quantity::kLse], lse);
  if (!p.backward()) return;
  for (const Quantity q : {Quantity::kDq, Quantity::kDk, Quantity::kDv}) write_zeros(reference[q], 0);
}

/// Pieces that threads take in ascending order, and how many of them are done.
struct Share {
  std::atomic<int64_t> taken = 0, done = 0;
};

class Evaluation {
 public:
  Evaluation(const LaneKernels& kernels, Preparation& prepared, int threads)
      : kernels_(kernels), prepared_(prepared), work_(prepared.work()),
        threads_(std::clamp<int64_t>(threads, 1, work_.blocks())), lag_(threads_ > 1 ? 1 : 0),
        window_(std::min(threads_ * (work_.keys > kLongRow ? 1 : 4 / (1 + lag_)), work_.blocks())),
        windows_((work_.blocks() + window_ - 1) / window_), shares_(windows_ + lag_ + 1) {
    for (int64_t n = 0; n < std::min((1 + lag_) * window_, work_.blocks()); ++n)
      blocks_.push_back(prepared.new_block());
  }

  void run() {
    run_on_threads(threads_, [this] { work(); });
  }

 private:
  /// On any number of threads, which may join at any time. The rows of a window and, where there are several threads, the keys of
  /// the window before are one share: its many small pieces come last and even out the large ones.
  void work() {
    for (int64_t step = 0; step < windows_ + lag_; ++step) {
      const int64_t rows = step < windows_ ? blocks_of(step) : 0;
      const int64_t keys = work_.backward && step >= lag_ ? key_pieces() : 0;
      share(shares_[step], rows + keys, [&](int64_t n) {
        if (n < rows) add_rows(step * window_ + n);
        else add_keys(step - lag_, (n - rows) * kKeysAtOnce);
      });
    }
    if (!work_.backward) return;
    share(shares_.back(), key_pieces(), [&](int64_t n) { kernels_.finish(work_, n * kKeysAtOnce, (n + 1) * kKeysAtOnce); });
  }

  void add_rows(int64_t n) {
    Block& block = block_of(n);
    prepared_.start(block, n);
    kernels_.rows(work_, block);
  }
  void add_keys(int64_t window, int64_t begin) {
    const int64_t end = std::min(begin + kKeysAtOnce, work_.keys_padded);
    for (int64_t n = 0; n < blocks_of(window); ++n) kernels_.keys(work_, block_of(window * window_ + n), begin, end);
  }

  int64_t blocks_of(int64_t window) const { return std::min(window_, work_.blocks() - window * window_); }
  int64_t key_pieces() const { return (work_.keys_padded + kKeysAtOnce - 1) / kKeysAtOnce; }
  Block& block_of(int64_t n) { return blocks_[n % static_cast<int64_t>(blocks_.size())]; }

  /// Calls task(n) for each n < count that no other thread has taken; then waits until all are done.
  template <class Task>
  static void share(Share& share, int64_t count, const Task& task) {
    for (int64_t n = share.taken++; n < count; n = share.taken++) {
      task(n);
      if (++share.done == count) share.done.notify_all();
    }
    for (int64_t done = share.done; done < count; done = share.done) share.done.wait(done);
  }

  const LaneKernels& kernels_;
  const Preparation& prepared_;
  const Work& work_;
  const int64_t threads_, lag_;     // lag_: windows that keys are behind rows
  const int64_t window_, windows_;  // blocks of a window
  std::vector<Block> blocks_;       // of 1 + lag_ windows
  std::vector<Share> shares_;
};

}  // namespace

void evaluate_with(const Lanes& lanes, Tier tier, const GroupProblem& problem, GroupReference& reference, int threads) {
  require_ieee_arithmetic();
  Preparation prepared(lanes, tier, problem, reference);
  const Work& work = prepared.work();
  if (work.keys < problem.n_kv || work.terms) write_rest(problem, reference);
  if (work.keys == 0) return;
  const LaneKernels& kernels = lanes.of[static_cast<int>(problem.op)].of[static_cast<int>(tier)];
  Evaluation(kernels, prepared, threads).run();
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
