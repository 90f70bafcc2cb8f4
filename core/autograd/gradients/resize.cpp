// resize is linear: along each axis it is a product with a matrix, which resize itself computes from the identity.
#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/ops.h"

namespace tenon::gradients {

void resize(const autograd::Backward& b) {
  const auto& attributes = b.attributes<ResizeAttributes>();
  const ep_resize_attributes& grid = attributes.grid;
  constexpr std::string_view modes[] = {"", "nearest", "linear", "cubic"};
  constexpr std::string_view rounds[] = {"floor", "floor", "ceil", "prefer_floor", "prefer_ceil"};
  const auto has = [&](int32_t flag) { return (grid.flags & flag) != 0; };
  const double half = has(EP_RESIZE_FLAG_HALF) ? 0.5 : 0;
  const Dims& dims = b.dims(0);
  Tensor grad = b.grad();
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    const int64_t from = dims[axis];
    const int64_t to = attributes.dims.values[axis];
    if (from == to && grid.scale[axis] == 1 && grid.offset[axis] == -half) continue;
    const Tensor identity = tenon::eye(from, std::nullopt, grad.dtype(), grad.device());
    const std::optional<double> fill = has(EP_RESIZE_FLAG_EXTRAPOLATE) ? std::optional(0.0) : std::nullopt;
    const Tensor weights =
        tenon::resize(identity, 0, to, grid.scale[axis], grid.offset[axis], modes[grid.mode], rounds[grid.round],
                      half != 0, grid.cubic, has(EP_RESIZE_FLAG_ANTIALIAS), has(EP_RESIZE_FLAG_EXCLUDE_OUTSIDE), fill);
    grad = tenon::transpose(tenon::matmul(tenon::transpose(grad, axis, -1), weights), axis, -1);
  }
  b.give(0, grad);
}

}  // namespace tenon::gradients
