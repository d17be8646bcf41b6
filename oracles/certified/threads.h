// The threads of the certified oracles. They are started once and wait for the next evaluation: starting them takes as long as a
// small problem.
#pragma once

#include <cstdint>
#include <functional>

namespace attest::certified {

/// Calls work() on the calling thread, and on up to threads − 1 others; returns when all that began have returned. How many join,
/// and when, is left to chance: `work` takes pieces as long as there are any. The others are busy with another caller's work, or
/// cannot be started: this one does it alone. A forked child has threads of its own. Where work() throws, the rest goes on, and the
/// caller gets what it threw itself, else the first that another did.
void run_on_threads(int64_t threads, const std::function<void()>& work);

}  // namespace attest::certified
