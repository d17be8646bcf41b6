// Work in a child process that may die without taking this one along.
#pragma once

#include <functional>
#include <string>

namespace attest::bench {

using Emit = std::function<void(const std::string& line)>;

/// Runs `work` in a child made by fork, and gives each line that it emits to `on_line` here, in order. Returns how the child
/// ended: "" when `work` returned, else e.g. "signal 11 (Segmentation fault)" or "exit code 1". Neither CUDA nor threads may
/// have been used in this process before. An exception from `work` ends the child; nothing is run after it, destructors included.
std::string in_child(const std::function<void(const Emit& emit)>& work, const Emit& on_line);

}  // namespace attest::bench
