#include "primitives/infer/reduce.h"
#include "primitives/infer/reduce-inl.h"
#include "primitives/text/format.h"

namespace tenon::infer {

Dims reduce(const Dims& dims, uint32_t axes, bool keep_dims) { return reduce<int64_t>(dims, axes, keep_dims); }

int64_t reduced_count(const Dims& dims, uint32_t axes) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if (axes >> axis & 1) count *= dims[axis];
  }
  return count;
}

Status require_elements(std::string_view op, const Dims& dims, uint32_t axes) {
  if (reduced_count(dims, axes) > 0 || element_count(reduce(dims, axes, false)) == 0) return {};
  return Status(Code::invalid_argument,
                fmt::format("{}: cannot reduce shape {} over an axis of length 0: the result has no value.", op, dims));
}

}  // namespace tenon::infer
