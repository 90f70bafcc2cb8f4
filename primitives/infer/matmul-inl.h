// The rule of matmul.h for sizes of any type.
#pragma once

#include <algorithm>
#include <string_view>

#include "primitives/infer/broadcast-inl.h"
#include "primitives/infer/matmul.h"

namespace tenon::infer {

template <class T>
BasicDims<T> batch_of(const BasicDims<T>& dims) {
  BasicDims<T> batch = dims;
  batch.resize(std::max(dims.rank() - 2, 0));
  return batch;
}

template <class T>
Result<BasicMatmulShape<T>> matmul(std::string_view op, const BasicDims<T>& a, const BasicDims<T>& b) {
  if (a.empty() || b.empty()) {
    return Status(Subject{op}, Code::invalid_argument,
                  fmt::format("both arguments must have at least one axis, but a is {} and b is {}.", a, b));
  }
  BasicMatmulShape<T> shape;
  shape.m = a.rank() == 1 ? T(1) : a[a.rank() - 2];
  shape.n = b.rank() == 1 ? T(1) : b.back();
  shape.k = a.back();
  const T rows = b.rank() == 1 ? b[0] : b[b.rank() - 2];
  if (!expect(shape.k == rows)) {
    return Status(Subject{op}, Code::invalid_argument,
                  fmt::format("columns of a ({}) do not match rows of b ({}).", shape.k, rows));
  }
  const BasicDims<T> batch_a = batch_of(a);
  const BasicDims<T> batch_b = batch_of(b);
  auto batch = broadcast<T>(op, batch_a, batch_b);
  if (!batch.ok()) return batch.status().with_context(fmt::format("  in the batch axes of a {} and b {}", a, b));
  shape.dims = shape.full = std::move(batch).value();
  shape.full.push_back(shape.m);
  shape.full.push_back(shape.n);
  if (a.rank() > 1) shape.dims.push_back(shape.m);
  if (b.rank() > 1) shape.dims.push_back(shape.n);
  TENON_RETURN_IF_ERROR(checked(op, shape.full).status());
  return shape;
}

}  // namespace tenon::infer
