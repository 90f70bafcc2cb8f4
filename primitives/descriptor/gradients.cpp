// The rules of the kinds for gradients, as stated in ep_api.h above their attributes.
#include "primitives/descriptor/check.h"

namespace tenon::descriptor {
Status check_convolution_weight(const Desc& desc) {
  const ep_convolution_weight_attributes& at = desc.attributes.convolution_weight;
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& gradient = get(desc, EP_ROLE_GRADIENT);
  const Operand& dst = get(desc, EP_ROLE_DST);
  const Windows windows{at.spatial_rank, at.stride, at.dilation, at.pad_low, at.pad_high};
  TENON_RETURN_IF_ERROR(check_windows(desc, windows, src));
  if (gradient.rank != src.rank || dst.rank != src.rank) {
    return wrong(desc, "'gradient' and 'dst' must have the rank of 'src' ({}).", src.rank);
  }
  if (at.groups < 1) return wrong(desc, "groups is {} but must be at least 1.", at.groups);
  const int64_t in = dst.dims[1] == EP_ANY ? EP_ANY : dst.dims[1] * at.groups;
  if (!agree(in, src.dims[1]) || !agree(dst.dims[0], gradient.dims[1]) || !agree(src.dims[0], gradient.dims[0])) {
    return wrong(desc, "shapes 'src' {}, 'gradient' {}, 'dst' {} and groups {} do not agree.", dims_of(src),
                 dims_of(gradient), dims_of(dst), at.groups);
  }
  if (dst.dims[0] != EP_ANY && dst.dims[0] % at.groups != 0)
    return wrong(desc, "output channels ({}) are not a multiple of groups.", dst.dims[0]);
  TENON_RETURN_IF_ERROR(check_window_lengths(desc, windows, src, gradient, dst));
  TENON_RETURN_IF_ERROR(is_float(desc, src));
  TENON_RETURN_IF_ERROR(same_type(desc, gradient, src));
  return same_type(desc, dst, src);
}

Status check_pooling_backward(const Desc& desc) {
  const ep_pooling_attributes& at = desc.attributes.pooling_backward;
  const Operand& gradient = get(desc, EP_ROLE_GRADIENT);
  const Operand& dst = get(desc, EP_ROLE_DST);
  const Operand* indices = find_operand(desc, EP_ROLE_INDICES);
  TENON_RETURN_IF_ERROR(check_pooling_windows(desc, at, dst, gradient));
  TENON_RETURN_IF_ERROR(is_float(desc, dst));
  TENON_RETURN_IF_ERROR(same_type(desc, gradient, dst));
  if (at.op == EP_POOLING_LP) return unsupported(desc, "lp pooling has no backward kind.");
  if (at.p != 0) return wrong(desc, "p is {}; it must be 0.", at.p);
  if ((at.op == EP_POOLING_MAX) != (indices != nullptr)) {
    return wrong(desc, "only max pooling has 'indices'.");
  }
  if (indices == nullptr) return {};
  TENON_RETURN_IF_ERROR(is_type(desc, *indices, DType::i64));
  return same_dims(desc, *indices, gradient);
}

Status check_layer_norm_backward(const Desc& desc) {
  const Operand& src = get(desc, EP_ROLE_SRC);
  const int32_t axis = desc.attributes.layer_norm_backward.axis;
  TENON_RETURN_IF_ERROR(are_like_source(desc, axis, {EP_ROLE_DST, EP_ROLE_GRADIENT}));
  for (int32_t role : {EP_ROLE_SCALE, EP_ROLE_SCALE_GRADIENT, EP_ROLE_SHIFT_GRADIENT}) {
    TENON_RETURN_IF_ERROR(is_normalised(desc, role, src, axis));
  }
  for (int32_t role : {EP_ROLE_MEAN, EP_ROLE_INV_STD}) {
    TENON_RETURN_IF_ERROR(is_type(desc, get(desc, role), statistics_type(src)));
    TENON_RETURN_IF_ERROR(same_dims_but_one(desc, get(desc, role), src, ~uint32_t{0} << axis));
  }
  return {};
}

Status check_batch_norm_training(const Desc& desc) {
  const Operand& src = get(desc, EP_ROLE_SRC);
  const int32_t axis = desc.attributes.batch_norm_training.axis;
  TENON_RETURN_IF_ERROR(are_like_source(desc, axis, {EP_ROLE_DST}));
  if ((find_operand(desc, EP_ROLE_SCALE) == nullptr) != (find_operand(desc, EP_ROLE_SHIFT) == nullptr)) {
    return wrong(desc, "'scale' and 'shift' must be given both or not at all.");
  }
  for (int32_t role : {EP_ROLE_SCALE, EP_ROLE_SHIFT, EP_ROLE_MEAN, EP_ROLE_INV_STD}) {
    TENON_RETURN_IF_ERROR(is_list(desc, role, src, axis));
  }
  TENON_RETURN_IF_ERROR(is_type(desc, get(desc, EP_ROLE_MEAN), statistics_type(src)));
  return is_type(desc, get(desc, EP_ROLE_INV_STD), statistics_type(src));
}

Status check_batch_norm_backward(const Desc& desc) {
  const Operand& src = get(desc, EP_ROLE_SRC);
  const int32_t axis = desc.attributes.batch_norm_backward.axis;
  TENON_RETURN_IF_ERROR(are_like_source(desc, axis, {EP_ROLE_DST, EP_ROLE_GRADIENT}));
  for (int32_t role : {EP_ROLE_SCALE, EP_ROLE_MEAN, EP_ROLE_INV_STD, EP_ROLE_SCALE_GRADIENT, EP_ROLE_SHIFT_GRADIENT}) {
    TENON_RETURN_IF_ERROR(is_list(desc, role, src, axis));
  }
  TENON_RETURN_IF_ERROR(is_type(desc, get(desc, EP_ROLE_MEAN), statistics_type(src)));
  return is_type(desc, get(desc, EP_ROLE_INV_STD), statistics_type(src));
}

}  // namespace tenon::descriptor
