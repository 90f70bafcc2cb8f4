// The rule of resize.
#include <cmath>

#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/rules/guards.h"
#include "core/ops/sym_call.h"

namespace tenon::ops {
namespace {

template <class Call>
Status check_grid(const Call& call, const ep_resize_attributes& at) {
  const std::string_view op = call.op->name;
  const int32_t rank = call.inputs[0]->rank();
  const bool nearest = at.mode == EP_RESIZE_NEAREST;
  const int32_t known = EP_RESIZE_FLAG_HALF | EP_RESIZE_FLAG_EXTRAPOLATE |
                        (nearest ? 0 : EP_RESIZE_FLAG_ANTIALIAS | EP_RESIZE_FLAG_EXCLUDE_OUTSIDE);
  TENON_RETURN_IF_ERROR(require_choice(call, "mode", at.mode, EP_RESIZE_NEAREST, EP_RESIZE_CUBIC));
  TENON_RETURN_IF_ERROR(
      require_choice(call, "round", at.round, nearest ? EP_RESIZE_FLOOR : 0, nearest ? EP_RESIZE_PREFER_CEIL : 0));
  TENON_RETURN_IF_ERROR(require_flags(call, at.flags, known));
  if (at.reserved != 0) return infer::wrong(op, "the reserved attribute is {}; it must be 0.", at.reserved);
  if (!std::isfinite(at.cubic) || (at.mode != EP_RESIZE_CUBIC && at.cubic != 0)) {
    return infer::wrong(op, "cubic is {}; it must be finite, and 0 but for mode cubic.", at.cubic);
  }
  for (int32_t axis = 0; axis < EP_MAX_RANK; ++axis) {
    const double scale = at.scale[axis], offset = at.offset[axis];
    if (!(scale >= 0) || !std::isfinite(scale) || !std::isfinite(offset)) {
      return infer::wrong(op, "scale {} and offset {} of axis {} must be finite, scale at least 0.", scale, offset,
                          axis);
    }
    if (axis < rank || (scale == 0 && offset == 0)) continue;
    return infer::wrong(op, "has scale {} and offset {} of axis {}, beyond rank {}.", scale, offset, axis, rank);
  }
  return nearest ? Status() : require_floating(call, 0, "input");
}

}  // namespace

template <class Call>
Status infer_resize(const Call& call, typename Call::Meta* outputs) {
  const auto& attributes = call.template attributes_as<ResizeAttributes>();
  const auto& input = call.inputs[0]->dims();
  const auto sizes = sizes_of(call, attributes.dims);
  if (input.rank() < 1 || sizes.size() != input.size()) {
    return infer::wrong(call.op->name, "{} sizes are given for input of rank {}; each axis must have one.",
                        sizes.size(), input.rank());
  }
  TENON_RETURN_IF_ERROR(check_grid(call, attributes.grid));
  for (const auto& size : sizes) {
    if (!expect(size >= 0)) return infer::wrong(call.op->name, "size is {}; it must be at least 0.", size);
  }
  for (int32_t axis = 0; axis < input.rank(); ++axis) {
    if (expect(input[axis] >= 1)) continue;
    return infer::wrong(call.op->name, "input of shape {} has no elements to take.", input);
  }
  outputs->dtype = call.inputs[0]->dtype();
  outputs->dims = BasicDims<typename Call::Size>(std::span<const typename Call::Size>(sizes));
  return checked_numbers(call, outputs->dims);
}

Status lower_resize(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Tensor& input = *call.inputs[0];
  lowering->desc.attributes.resize = call.attributes_as<ResizeAttributes>().grid;
  lowering->scalar_dtypes[0] = outputs[0].dtype;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, outputs[0].dims, outputs[0].strides);
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), input.dims(), input.strides());
  return {};
}

template Status infer_resize(const OpCall&, TensorMeta*);
template Status infer_resize(const SymCall&, SymMeta*);

}  // namespace tenon::ops
