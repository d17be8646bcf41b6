#include "oracles/certified/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace attest::certified {
namespace {

using namespace std::chrono_literals;

/// Threads that worked until `threads` of them had come, or long enough.
std::set<std::thread::id> meet(int64_t threads) {
  std::mutex mutex;
  std::set<std::thread::id> met;
  run_on_threads(threads, [&] {
    for (int wait = 0; wait < 2000; ++wait) {
      {
        const std::lock_guard lock(mutex);
        met.insert(std::this_thread::get_id());
        if (static_cast<int64_t>(met.size()) >= threads) return;
      }
      std::this_thread::sleep_for(1ms);
    }
  });
  return met;
}

TEST(Threads, AreAsManyAsAskedForAndTheSameAgain) {
  const auto first = meet(3), second = meet(3);
  EXPECT_EQ(first.size(), 3U);
  EXPECT_TRUE(first.contains(std::this_thread::get_id()));
  EXPECT_EQ(first, second);
  EXPECT_EQ(meet(5).size(), 5U);
  EXPECT_EQ(meet(1), std::set{std::this_thread::get_id()});
}

TEST(Threads, NoneWorksOnAfterTheCallReturned) {
  for (int round = 0; round < 2000; ++round) {
    std::atomic<int> working = 0;
    run_on_threads(3, [&] {
      ++working;
      --working;
    });
    ASSERT_EQ(working, 0);
  }
}

TEST(Threads, SeveralCallersAtOnceAllReturn) {
  std::atomic<int> calls = 0;
  {
    std::vector<std::jthread> callers;
    for (int n = 0; n < 4; ++n)
      callers.emplace_back([&] {
        for (int round = 0; round < 500; ++round) run_on_threads(3, [&] { ++calls; });
      });
  }
  EXPECT_GE(calls, 4 * 500);
}

TEST(Threads, WhatIsThrownReachesTheCallerWhoeverThrewAndTheThreadsStay) {
  const auto caller = std::this_thread::get_id();
  const auto before = meet(5);  // all that there are
  for (const bool by_caller : {true, false}) {
    std::atomic<int> came = 0;
    const auto work = [&] {
      ++came;
      for (int wait = 0; wait < 2000 && came < 3; ++wait) std::this_thread::sleep_for(1ms);
      if ((std::this_thread::get_id() == caller) == by_caller) throw std::runtime_error(by_caller ? "mine" : "another's");
    };
    try {
      run_on_threads(3, work);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), by_caller ? "mine" : "another's");
    }
  }
  EXPECT_EQ(meet(5), before);
  EXPECT_NO_THROW(run_on_threads(3, [] {}));
  EXPECT_THROW(run_on_threads(1, [] { throw std::runtime_error("alone"); }), std::runtime_error);
}

TEST(Threads, AForkedChildHasItsOwn) {
  EXPECT_EQ(meet(3).size(), 3U);
  const pid_t child = fork();
  if (child == 0) _exit(meet(3).size() == 3 && meet(3).size() == 3 ? 0 : 1);
  int status = -1;
  for (int wait = 0; wait < 1000 && waitpid(child, &status, WNOHANG) == 0; ++wait) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(meet(3).size(), 3U);
}

TEST(Threads, AForkAmidTheWorkOfOthersLeavesTheChildFree) {
  std::atomic<bool> ended = false;
  std::jthread busy([&] {
    while (!ended) run_on_threads(3, [] { std::this_thread::sleep_for(100us); });
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      std::atomic<int> calls = 0;
      run_on_threads(2, [&] { ++calls; });
      _exit(calls >= 1 ? 0 : 1);
    }
    int status = -1;
    for (int wait = 0; wait < 1000 && waitpid(child, &status, WNOHANG) == 0; ++wait) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
  }
  ended = true;
}

TEST(Threads, AreJoinedAtExit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process, which has no threads yet
  EXPECT_EXIT(
      {
        run_on_threads(3, [] {});
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace attest::certified
