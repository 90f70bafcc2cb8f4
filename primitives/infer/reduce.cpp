#include "primitives/infer/reduce.h"
#include "primitives/infer/reduce-inl.h"

namespace tenon::infer {

Dims reduce(const Dims& dims, uint32_t axes, bool keep_dims) { return reduce<int64_t>(dims, axes, keep_dims); }

int64_t reduced_count(const Dims& dims, uint32_t axes) { return reduced_count<int64_t>(dims, axes); }

Status require_elements(std::string_view op, const Dims& dims, uint32_t axes) {
  return require_elements<int64_t>(op, dims, axes);
}

}  // namespace tenon::infer
