#include "primitives/infer/broadcast.h"

#include "primitives/infer/axis.h"
#include "primitives/text/format.h"

namespace tenon::infer {
namespace {

// Widens `dims` to hold `shape`; false where an axis is neither equal nor 1.
bool widen(Dims& dims, const Dims& shape) {
  while (dims.rank() < shape.rank()) dims.insert(0, 1);
  const int32_t shift = dims.rank() - shape.rank();
  for (int32_t axis = 0; axis < shape.rank(); ++axis) {
    int64_t& dim = dims[axis + shift];
    if (dim == shape[axis] || shape[axis] == 1) continue;
    if (dim != 1) return false;
    dim = shape[axis];
  }
  return true;
}

Status mismatch(std::string_view op, std::span<const Dims> shapes) {
  std::string text;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (i > 0) text += i + 1 == shapes.size() ? " and " : ", ";
    text += to_string(shapes[i]);
  }
  return Status(
      Code::invalid_argument,
      fmt::format("{}: shapes {} do not broadcast: aligned at the last axis, dims must be equal or 1.", op, text));
}

}  // namespace

Result<Dims> broadcast(std::string_view op, std::span<const Dims> shapes) {
  Dims dims;
  for (const Dims& shape : shapes) {
    if (!widen(dims, shape)) return mismatch(op, shapes);
  }
  return checked(op, dims);
}

Result<Dims> broadcast(std::string_view op, const Dims& a, const Dims& b) {
  if (a == b) return a;
  const Dims shapes[] = {a, b};
  return broadcast(op, shapes);
}

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
