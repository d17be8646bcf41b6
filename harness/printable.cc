#include "harness/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace attest {
namespace {

/// Bytes of the UTF-8 character that `text` begins with; 0 when it begins with none, or with a control character (those of
/// C1, U+0080 to U+009F, steer terminals too).
size_t printable_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  const size_t length = byte(0) >= 0xf5 ? 0 : byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc2 ? 2 : 0;
  if (length > text.size() || (byte(0) == 0xc2 && text.size() > 1 && byte(1) < 0xa0)) return 0;
  for (size_t i = 1; i < length; ++i)
    if (byte(i) >> 6 != 2) return 0;
  return length;
}

std::string escaped(char c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

}  // namespace

std::string printable(std::string_view text, size_t most) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= most) return out + fmt::format("… ({} bytes more)", text.size());
    const size_t bytes = printable_bytes(text);
    out += bytes == 0 ? escaped(text.front()) : std::string(text.substr(0, bytes));
    text.remove_prefix(std::max<size_t>(1, bytes));
  }
  return out;
}

std::string shell_word(const std::string& text) {
  constexpr char kPlain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace attest
