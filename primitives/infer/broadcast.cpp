#include "primitives/infer/broadcast.h"

#include "primitives/infer/broadcast-inl.h"

namespace tenon::infer {
Result<Dims> broadcast(std::string_view op, std::span<const Dims> shapes) { return broadcast<int64_t>(op, shapes); }

Result<Dims> broadcast(std::string_view op, const Dims& a, const Dims& b) { return broadcast<int64_t>(op, a, b); }

Result<Dims> broadcast(std::string_view op, const Dims& a, const Dims& b, const Dims& c) {
  const Dims shapes[] = {a, b, c};
  return broadcast(op, shapes);
}

Dims broadcast_strides(const Dims& dims, const Dims& strides, const Dims& target) {
  Dims result = Dims::filled(target.rank(), 0);
  const int32_t shift = target.rank() - dims.rank();
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    const bool repeats = dims[axis] == 1 && target[axis + shift] != 1;
    result[axis + shift] = repeats ? 0 : strides[axis];
  }
  return result;
}

bool broadcasts_to(const Dims& dims, const Dims& target) {
  const int32_t shift = target.rank() - dims.rank();
  if (shift < 0) return false;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if (dims[axis] != 1 && dims[axis] != target[axis + shift]) return false;
  }
  return true;
}

}  // namespace tenon::infer
