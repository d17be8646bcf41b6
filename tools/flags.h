// What several commands' options have in common.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/select.h"

namespace attest {

/// Refuses an empty text, which would otherwise mean that the option was not given.
CLI::Validator not_empty();
/// Refuses what is no decimal number without a sign (an unsigned option would take -1 for 2^64 - 1).
CLI::Validator natural_number();

/// --load: paths are made absolute, so that what is kept of them means the same elsewhere.
void add_load(CLI::App& app, Selection& selection);
/// As they are pasted into a shell.
std::string load_arguments(const Selection& selection);

}  // namespace attest
