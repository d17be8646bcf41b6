#include "oracles/certified/arena.h"

#include <algorithm>
#include <new>

namespace attest::certified {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr int64_t kCacheLine = 8, kSmallestChunk = int64_t{1} << 18, kMostSpare = int64_t{1} << 23;  // doubles

}  // namespace

void Arena::Free::operator()(double* p) const { ::operator delete[](p, kAlignment); }

std::vector<Arena::Chunk>& Arena::spare() {
  thread_local std::vector<Chunk> chunks;
  return chunks;
}

Arena::~Arena() {
  int64_t kept = 0;
  for (const Chunk& chunk : spare()) kept += chunk.size;
  for (Chunk& chunk : chunks_) {
    if (kept + chunk.size > kMostSpare) continue;
    kept += chunk.size;
    spare().push_back(std::move(chunk));
  }
}

void Arena::add_chunk(int64_t count) {
  auto& chunks = spare();
  const auto fits = std::find_if(chunks.begin(), chunks.end(), [&](const Chunk& c) { return c.size >= count; });
  used_ = 0;
  if (fits != chunks.end()) {
    chunks_.push_back(std::move(*fits));
    chunks.erase(fits);
    return;
  }
  const int64_t size = std::max(count, kSmallestChunk);
  auto* data = static_cast<double*>(::operator new[](static_cast<size_t>(size) * sizeof(double), kAlignment));
  chunks_.push_back({std::unique_ptr<double[], Free>(data), size});
}

double* Arena::take(int64_t count) {
  count = (count + kCacheLine - 1) / kCacheLine * kCacheLine;
  if (chunks_.empty() || used_ + count > chunks_.back().size) add_chunk(count);
  used_ += count;
  return chunks_.back().data.get() + used_ - count;
}

double* Arena::take_zeros(int64_t count) {
  double* p = take(count);
  std::fill_n(p, count, 0.0);
  return p;
}

}  // namespace attest::certified
