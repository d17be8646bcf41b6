// Memory of one evaluation. Campaigns evaluate thousands of small problems a second: what one leaves, the next one takes, since
// fresh pages from the system cost more than the arithmetic.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace attest::certified {

/// Hands out doubles, aligned to cache lines; all of them live as long as the arena. Not for use by several threads.
class Arena {
 public:
  ~Arena();
  double* take(int64_t count);  // not initialised
  double* take_zeros(int64_t count);

 private:
  struct Free {
    void operator()(double* p) const;
  };
  struct Chunk {
    std::unique_ptr<double[], Free> data;
    int64_t size = 0;
  };
  static std::vector<Chunk>& spare();  // of this thread
  void add_chunk(int64_t count);

  std::vector<Chunk> chunks_;  // the last one is being handed out
  int64_t used_ = 0;           // of the last one
};

}  // namespace attest::certified
