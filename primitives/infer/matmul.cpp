#include "primitives/infer/matmul.h"

#include "primitives/infer/broadcast.h"
#include "primitives/infer/matmul-inl.h"

namespace tenon::infer {
namespace {

// `view`, which has at least rank 2, read with the batch axes of `full`.
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

Result<MatmulShape> matmul(std::string_view op, const Dims& a, const Dims& b) { return matmul<int64_t>(op, a, b); }

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
    return Status(Subject{op}, Code::invalid_argument,
                  fmt::format("the weight must have rank 2, but its shape is {}.", weight));
  }
  if (x.empty() || x.back() != weight[1]) {
    return Status(Subject{op}, Code::invalid_argument,
                  fmt::format("the last axis of x {} does not match the columns of the weight ({}).", x, weight[1]));
  }
  if (bias != nullptr && !(*bias == Dims{weight[0]})) {
    return Status(Subject{op}, Code::invalid_argument,
                  fmt::format("the bias must have shape [{}], but its shape is {}.", weight[0], *bias));
  }
  Dims result = x;
  result[x.rank() - 1] = weight[0];
  return checked(op, result);
}

}  // namespace tenon::infer
