// batch_norm with given statistics: an element-wise function of an element and the four numbers of its channel.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "providers/cuda/elementwise/map.h"
#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/normalization/normalization.h"

namespace tenon::provider::cuda {
namespace {

constexpr int32_t channel_roles[] = {EP_ROLE_SCALE, EP_ROLE_SHIFT, EP_ROLE_MEAN, EP_ROLE_VARIANCE};

class BatchNormPrimitive final : public ep_primitive {
 public:
  BatchNormPrimitive(const ep_primitive_desc& desc, CUfunction function)
      : desc_(desc), src_(find_operand(desc, EP_ROLE_SRC)), function_(function) {
    plan_.count = 3;
    plan_.dtypes[0] = plan_.dtypes[1] = desc.operands[0].dtype;
    plan_.dtypes[2] = EP_DTYPE_u8;  // a stride of 1 is then one channel
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    if (launch.scalar_count < 1)
      return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "batch_norm has no launch scalar 0 (eps).");
    BatchNormArguments norm{};
    const uint64_t eps = parameter_bits(launch.scalars[0], EP_DTYPE_f64);
    std::memcpy(&norm.eps, &eps, sizeof eps);
    for (size_t slot = 0; slot < std::size(channel_roles); ++slot) {
      const int32_t i = find_operand(desc_, channel_roles[slot]);
      if (i < 0) continue;
      norm.addresses[slot] = address_of(launch.operands[i]);
      norm.strides[slot] = shape(launch, i).strides[0];
      norm.dtypes[slot] = desc_.operands[i].dtype;
    }
    const OperandShape dst = shape(launch, 0);
    int64_t channels[EP_MAX_RANK] = {};
    channels[desc_.attributes.batch_norm.axis] = 1;
    const OperandShape three[] = {dst, shape(launch, src_), {dst.dims, channels, dst.rank}};
    MapOperands operands;
    operands.addresses[0] = address_of(launch.operands[0]);
    operands.addresses[1] = address_of(launch.operands[src_]);
    return cut(plan_, folded(plan_, three), operands, [&](const MapShape& piece, const MapOperands& of_piece) {
      norm.map = map_arguments(plan_, piece, of_piece);
      return launch_kernel(stream, function_, blocks_for(norm.map.chunks), &norm, error);
    });
  }

 private:
  OperandShape shape(const ep_launch& launch, int32_t i) const {
    return shape_of(desc_.operands[i], launch.shapes, static_cast<uint32_t>(i));
  }

  ep_primitive_desc desc_;
  int32_t src_;
  CUfunction function_;
  MapPlan plan_;
};

}  // namespace

Refusal BatchNorm::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  if (dst.role != EP_ROLE_DST || src == nullptr || operand(desc, EP_ROLE_MEAN) == nullptr ||
      operand(desc, EP_ROLE_VARIANCE) == nullptr)
    return Refusal::because("DST, SRC, MEAN or VARIANCE is missing");
  const int32_t dtype_class = class_of(dst.dtype);
  if (dtype_class != EP_DTYPE_f32 && dtype_class != EP_DTYPE_f64)
    return Refusal::because("no kernel normalises %s", dtype_name(dst.dtype));
  const int32_t axis = desc.attributes.batch_norm.axis;
  if (axis < 0 || axis >= dst.rank) return Refusal::because("axis %d of rank %d", axis, dst.rank);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& one = desc.operands[i];
    const bool whole = i == 0 || &one == src;
    const bool known =
        std::find(std::begin(channel_roles), std::end(channel_roles), one.role) != std::end(channel_roles);
    if (!whole && !known) return Refusal::because("operand %u has role %d", i, one.role);
    if (is_scalar(one) || one.rank != (whole ? dst.rank : 1))
      return Refusal::because("operand %u has rank %d", i, one.rank);
    if (whole ? one.dtype != dst.dtype : class_of(one.dtype) != dtype_class)
      return Refusal::because("operand %u is %s, the result %s", i, dtype_name(one.dtype), dtype_name(dst.dtype));
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal BatchNorm::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const std::string name = fmt::format("batch_norm_{}", class_name(class_of(desc.operands[0].dtype)));
  CUfunction function = nullptr;
  if (Refusal refusal = find_kernel(device, Family::NORM, name.c_str(), &function)) return refusal;
  *out = make_primitive<BatchNormPrimitive>(device, desc, function);
  return {};
}

}  // namespace tenon::provider::cuda
