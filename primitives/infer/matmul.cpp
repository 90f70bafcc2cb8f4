#include "primitives/infer/matmul.h"

#include "primitives/infer/axis.h"
#include "primitives/infer/broadcast.h"
#include "primitives/text/format.h"

namespace tenon::infer {
namespace {

Dims batch_of(const Dims& dims) {
  Dims batch = dims;
  batch.resize(std::max(dims.rank() - 2, 0));
  return batch;
}

// `view`, of rank 2 at least, read with the batch axes of `full`.
View batched(View view, const Dims& full) {
  const Dims rows_columns = {view.dims[view.dims.rank() - 2], view.dims.back()};
  Dims target = full;
  target[full.rank() - 2] = rows_columns[0];
  target[full.rank() - 1] = rows_columns[1];
  view.strides = broadcast_strides(view.dims, view.strides, target);
  view.dims = target;
  return view;
}

}  // namespace

Result<MatmulShape> matmul(std::string_view op, const Dims& a, const Dims& b) {
  if (a.empty() || b.empty()) {
    return Status(Code::invalid_argument,
                  fmt::format("{}: both arguments must have at least one axis, but a is {} and b is {}.", op, a, b));
  }
  MatmulShape shape;
  shape.m = a.rank() == 1 ? 1 : a[a.rank() - 2];
  shape.n = b.rank() == 1 ? 1 : b.back();
  shape.k = a.back();
  const int64_t rows = b.rank() == 1 ? b[0] : b[b.rank() - 2];
  if (shape.k != rows) {
    return Status(Code::invalid_argument,
                  fmt::format("{}: columns of a ({}) do not match rows of b ({}).", op, shape.k, rows));
  }
  const Dims batch_a = batch_of(a);
  const Dims batch_b = batch_of(b);
  auto batch = broadcast(op, batch_a, batch_b);
  if (!batch.ok()) return batch.status().with_context(fmt::format("  in the batch axes of a {} and b {}", a, b));
  shape.dims = shape.full = std::move(batch).value();
  shape.full.push_back(shape.m);
  shape.full.push_back(shape.n);
  if (a.rank() > 1) shape.dims.push_back(shape.m);
  if (b.rank() > 1) shape.dims.push_back(shape.n);
  TENON_RETURN_IF_ERROR(checked(op, shape.full).status());
  return shape;
}

View matmul_left(const MatmulShape& shape, const View& a) {
  View view = a;
  if (view.dims.rank() == 1) {
    view.dims.insert(0, 1);
    view.strides.insert(0, std::max<int64_t>(shape.k, 1) * std::max<int64_t>(view.strides[0], 1));
  }
  return batched(view, shape.full);
}

View matmul_right(const MatmulShape& shape, const View& b) {
  View view = b;
  if (view.dims.rank() == 1) {
    view.dims.push_back(1);
    view.strides.push_back(1);
  }
  return batched(view, shape.full);
}

Result<Dims> linear(std::string_view op, const Dims& x, const Dims& weight, const Dims* bias) {
  if (weight.rank() != 2) {
    return Status(Code::invalid_argument,
                  fmt::format("{}: the weight must have rank 2, but its shape is {}.", op, weight));
  }
  if (x.empty() || x.back() != weight[1]) {
    return Status(
        Code::invalid_argument,
        fmt::format("{}: the last axis of x {} does not match the columns of the weight ({}).", op, x, weight[1]));
  }
  if (bias != nullptr && !(*bias == Dims{weight[0]})) {
    return Status(Code::invalid_argument,
                  fmt::format("{}: the bias must have shape [{}], but its shape is {}.", op, weight[0], *bias));
  }
  Dims result = x;
  result[x.rank() - 1] = weight[0];
  return checked(op, result);
}

}  // namespace tenon::infer
