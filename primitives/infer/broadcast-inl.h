// The rules of broadcast.h for sizes of any type.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "primitives/infer/axis.h"
#include "primitives/infer/size.h"
#include "primitives/infer/wrong.h"

namespace tenon::infer {

// Broadcasts `shape` into `dims`. Returns false if the lengths of an axis differ and neither is 1.
template <class T>
bool widen(BasicDims<T>& dims, const BasicDims<T>& shape) {
  while (dims.rank() < shape.rank()) dims.insert(0, 1);
  const int32_t shift = dims.rank() - shape.rank();
  for (int32_t axis = 0; axis < shape.rank(); ++axis) {
    if (!broadcast_size(dims[axis + shift], shape[axis], &dims[axis + shift])) return false;
  }
  return true;
}

template <class T>
Status mismatch(std::string_view op, std::span<const BasicDims<T>> shapes) {
  std::string text;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (i > 0) text += i + 1 == shapes.size() ? " and " : ", ";
    text += to_string(shapes[i]);
  }
  return wrong(op, "shapes {} do not broadcast: aligned at the last axis, dims must be equal or 1.", text);
}

template <class T>
Result<BasicDims<T>> broadcast(std::string_view op, std::span<const BasicDims<T>> shapes) {
  BasicDims<T> dims;
  for (const BasicDims<T>& shape : shapes) {
    if (!widen(dims, shape)) return mismatch(op, shapes);
  }
  return checked(op, dims);
}

template <class T>
Result<BasicDims<T>> broadcast(std::string_view op, const BasicDims<T>& a, const BasicDims<T>& b) {
  if (identical(a, b)) return a;
  const BasicDims<T> shapes[] = {a, b};
  return broadcast<T>(op, std::span<const BasicDims<T>>(shapes));
}

}  // namespace tenon::infer
