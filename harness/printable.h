// Text from outside (of a kernel, a library, a path) made fit to be printed.
#pragma once

#include <string>
#include <string_view>

namespace attest {

/// Control characters and bytes that are no UTF-8 become visible (\n, \x1b); what is longer than about `most` bytes is cut.
std::string printable(std::string_view text, size_t most = 1000);

/// As one word of a shell's command line: quoted where it has to be.
std::string shell_word(const std::string& text);

}  // namespace attest
