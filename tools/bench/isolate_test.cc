#include "tools/bench/isolate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace attest::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(InChild, hands_every_line_over_in_order) {
  std::vector<std::string> lines;
  const std::string big(200000, 'x');
  EXPECT_EQ(in_child([&](const Emit& emit) { return emit("one"), emit(big), emit("three"); },
                     [&](const std::string& line) { lines.push_back(line); }),
            "");
  EXPECT_THAT(lines, ElementsAre("one", big, "three"));
}

TEST(InChild, says_how_it_ended_and_keeps_what_came_before) {
  std::vector<std::string> lines;
  const auto keep = [&](const std::string& line) { lines.push_back(line); };
  EXPECT_THAT(in_child([](const Emit& emit) { return emit("before"), void(std::raise(SIGKILL)); }, keep), HasSubstr("signal 9"));
  EXPECT_EQ(in_child([](const Emit&) { std::_Exit(7); }, keep), "exit code 7");
  EXPECT_EQ(in_child([](const Emit&) { throw std::runtime_error("thrown on purpose by a test"); }, keep), "exit code 1");
  EXPECT_THAT(lines, ElementsAre("before"));
}

}  // namespace
}  // namespace attest::bench
