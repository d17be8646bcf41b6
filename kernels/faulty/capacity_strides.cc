// Defect: the stride between heads is computed from the number of keys, not taken from the tensor, so a cache with more capacity
// than length is read wrongly. One KV head hides it. Smallest case: Hq=2, Hkv=2, one query, one key.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

/// Heads one after the other without a gap, as far as the row stride goes; memory beyond the storage is left alone.
at::Tensor assumed_compact(const at::Tensor& t) {
  std::vector<int64_t> strides = t.strides().vec();
  if (t.size(1) > 1 && strides[1] > strides[2]) strides[1] = strides[2] * t.size(2);
  return t.as_strided(t.sizes(), strides, t.storage_offset());
}

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.capacity_strides", Op::kSoftmax,
                                         "takes the length of a cache for its capacity", "kv_cache.forward");
  variant.run = [](const Inputs& in) {
    Inputs compact = in;
    compact.k = assumed_compact(in.k);
    compact.v = assumed_compact(in.v);
    return naive_softmax(compact);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
