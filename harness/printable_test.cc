#include "harness/printable.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace attest {
namespace {

TEST(Printable, what_can_be_read_is_left_as_it_is) {
  for (const char* text : {"", "out[0, 1] = 3 × bound", "größer ± 3e-19 … \xf0\x9f\x98\x80"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, control_characters_and_broken_bytes_are_shown) {
  EXPECT_EQ(printable("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(printable("\xc2\x9b" "31m"), "\\xc2\\x9b31m");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
}

TEST(Printable, a_long_text_is_cut_between_characters_and_says_by_how_much) {
  EXPECT_EQ(printable(std::string(1000, 'a')), std::string(1000, 'a'));
  EXPECT_EQ(printable(std::string(1234, 'a')), std::string(1000, 'a') + "… (234 bytes more)");
  EXPECT_EQ(printable("×××", 3), "××… (2 bytes more)");
}

RC_GTEST_PROP(Printable, holds_no_control_character_whatever_the_bytes, ()) {
  for (const char c : printable(*rc::gen::arbitrary<std::string>()))
    RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) != 0x7f);
}

TEST(ShellWord, is_quoted_where_a_shell_would_change_it) {
  EXPECT_EQ(shell_word("runs/x-1/softmax.cpu@a/1.h5"), "runs/x-1/softmax.cpu@a/1.h5");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("my ops.so"), "'my ops.so'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace attest
