// concat and split: several operands are consecutive parts of one other operand along an axis.
#include "providers/cpu/movement/movement.h"
#include "providers/cpu/movement/strided_copy.h"

namespace tenon::provider::cpu {
namespace {

class PartsPrimitive final : public ep_primitive {
 public:
  explicit PartsPrimitive(const ep_primitive_desc& desc)
      : desc_(desc),
        joins_(desc.kind == EP_PRIMITIVE_concat),
        whole_(joins_ ? 0 : static_cast<int32_t>(desc.operand_count) - 1) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const int32_t axis = joins_ ? desc_.attributes.concat.axis : desc_.attributes.split.axis;
    const OperandShape whole = shape(launch.shapes, whole_);
    const int32_t size = dtype_size(desc_.operands[0].dtype);
    int64_t position = 0;
    for (int32_t i = 0; i < static_cast<int32_t>(desc_.operand_count); ++i) {
      if (i == whole_) continue;
      const OperandShape part = shape(launch.shapes, i);
      StridedCopy copy;
      copy.rank = part.rank;
      copy.size = size;
      for (int32_t k = 0; k < part.rank; ++k) {
        copy.dims[k] = part.dims[k];
        copy.dst_strides[k] = joins_ ? whole.strides[k] : part.strides[k];
        copy.src_strides[k] = joins_ ? part.strides[k] : whole.strides[k];
      }
      char* inside = address_of(launch.operands[whole_]) + position * whole.strides[axis] * size;
      char* alone = address_of(launch.operands[i]);
      strided_copy(copy, joins_ ? inside : alone, joins_ ? alone : inside, device->simd, device->threads);
      position += part.dims[axis];
    }
    return EP_STATUS_OK;
  }

 private:
  OperandShape shape(const ep_shape* shapes, int32_t i) const {
    return shape_of(desc_.operands[i], shapes, static_cast<uint32_t>(i));
  }

  ep_primitive_desc desc_;
  bool joins_;
  int32_t whole_;
};

}  // namespace

Refusal Parts::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count < 2) return Refusal::because("%u operands", desc.operand_count);
  const bool joins = desc.kind == EP_PRIMITIVE_concat;
  const int32_t whole = joins ? 0 : static_cast<int32_t>(desc.operand_count) - 1;
  if (desc.operands[whole].role != (joins ? EP_ROLE_DST : EP_ROLE_SRC))
    return Refusal::because("operand %d has role %d", whole, desc.operands[whole].role);
  const int32_t axis = joins ? desc.attributes.concat.axis : desc.attributes.split.axis;
  const ep_operand_desc& first = desc.operands[0];
  if (axis < 0 || axis >= first.rank) return Refusal::because("axis %d of rank %d", axis, first.rank);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand) || operand.rank != first.rank)
      return Refusal::because("operand %u has rank %d", i, operand.rank);
    if (operand.dtype != first.dtype)
      return Refusal::because("parts of %s and %s", dtype_name(first.dtype), dtype_name(operand.dtype));
  }
  if (dtype_size(first.dtype) == 0) return Refusal::because("%s is packed", dtype_name(first.dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Parts::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<PartsPrimitive>(device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
