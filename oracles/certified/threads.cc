#include "oracles/certified/threads.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace attest::certified {
namespace {

class Pool {
 public:
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
  }

  void run(int64_t others, const std::function<void()>& work) {
    const std::unique_lock one_caller(caller_, std::try_to_lock);
    if (one_caller.owns_lock()) {
      start(others);
      offer(&work, others);
    }
    std::exception_ptr failure = failure_of(work);
    if (one_caller.owns_lock())
      if (std::exception_ptr others_failure = withdraw(); !failure) failure = std::move(others_failure);
    if (failure) std::rethrow_exception(failure);
  }

 private:
  static std::exception_ptr failure_of(const std::function<void()>& work) noexcept {
    try {
      work();
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  void start(int64_t count) {
    try {
      while (static_cast<int64_t>(threads_.size()) < count) threads_.emplace_back([this] { wait_for_work(); });
    } catch (const std::system_error&) {  // no more threads for this process: those that there are will do
    }
  }

  void offer(const std::function<void()>* work, int64_t places) {
    {
      const std::lock_guard lock(mutex_);
      work_ = work;
      places_ = places;
    }
    wake_.notify_all();
  }

  /// What the first of the others that failed has thrown.
  std::exception_ptr withdraw() {
    std::unique_lock lock(mutex_);
    places_ = 0;
    idle_.wait(lock, [this] { return at_work_ == 0; });
    return std::exchange(failure_, nullptr);
  }

  void wait_for_work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return ended_ || places_ > 0; });
      if (ended_) return;
      --places_;
      ++at_work_;
      const std::function<void()>& work = *work_;
      lock.unlock();
      std::exception_ptr failure = failure_of(work);
      lock.lock();
      if (!failure_) failure_ = std::move(failure);
      if (--at_work_ == 0) idle_.notify_all();
    }
  }

  std::mutex caller_;  // held while one evaluation has the threads
  std::mutex mutex_;   // of what follows
  std::condition_variable wake_, idle_;
  const std::function<void()>* work_ = nullptr;
  int64_t places_ = 0, at_work_ = 0;  // threads that may still join, and that have
  std::exception_ptr failure_;             // of those that have, for their caller
  bool ended_ = false;
  std::vector<std::jthread> threads_;
};

std::atomic<Pool*> the_pool = nullptr;

/// A child of fork has none of its parent's threads, and perhaps a mutex that one of them held: it forgets them all.
const struct Lifetime {
  Lifetime() {
    pthread_atfork(nullptr, nullptr, [] { the_pool = nullptr; });
  }
  ~Lifetime() { delete the_pool.exchange(nullptr); }
} lifetime;

Pool& pool() {
  if (Pool* const present = the_pool) return *present;
  auto* const fresh = new Pool;
  Pool* present = nullptr;
  if (the_pool.compare_exchange_strong(present, fresh)) return *fresh;
  delete fresh;
  return *present;
}

}  // namespace

void run_on_threads(int64_t threads, const std::function<void()>& work) {
  if (threads > 1) pool().run(threads - 1, work);
  else work();
}

}  // namespace attest::certified
