// concat and split: copies each part to its place in the whole, or from there.
#include "providers/cuda/movement/movement.h"

namespace tenon::provider::cuda {
namespace {

bool joins(const ep_primitive_desc& desc) { return desc.kind == EP_PRIMITIVE_concat; }
uint32_t whole_of(const ep_primitive_desc& desc) { return joins(desc) ? 0 : desc.operand_count - 1; }
int32_t axis_of(const ep_primitive_desc& desc) {
  return joins(desc) ? desc.attributes.concat.axis : desc.attributes.split.axis;
}

class PartsPrimitive final : public ep_primitive {
 public:
  PartsPrimitive(const ep_primitive_desc& desc, const Mover& mover)
      : desc_(desc), joins_(joins(desc)), whole_(whole_of(desc)), axis_(axis_of(desc)), mover_(mover) {}

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    const OperandShape whole = shape_of(desc_.operands[whole_], launch.shapes, whole_);
    const int64_t size = dtype_size(desc_.operands[0].dtype);
    CUdeviceptr place = address_of(launch.operands[whole_]);
    for (uint32_t i = 0; i < desc_.operand_count; ++i) {
      if (i == whole_) continue;
      const OperandShape part = shape_of(desc_.operands[i], launch.shapes, i);
      const OperandShape in_whole = {part.dims, whole.strides, part.rank};
      const CUdeviceptr alone = address_of(launch.operands[i]);
      const ep_status status = joins_ ? mover_.run(stream, in_whole, place, part, alone, error)
                                      : mover_.run(stream, part, alone, in_whole, place, error);
      if (status != EP_STATUS_OK) return status;
      place += static_cast<uint64_t>(part.dims[axis_] * whole.strides[axis_] * size);
    }
    return EP_STATUS_OK;
  }

 private:
  ep_primitive_desc desc_;
  bool joins_;
  uint32_t whole_;
  int32_t axis_;
  Mover mover_;
};

}  // namespace

Refusal Parts::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count < 2) return Refusal::because("%u operands", desc.operand_count);
  const uint32_t whole = whole_of(desc);
  const ep_operand_desc& first = desc.operands[0];
  if (desc.operands[whole].role != (joins(desc) ? EP_ROLE_DST : EP_ROLE_SRC))
    return Refusal::because("operand %u has role %d", whole, desc.operands[whole].role);
  if (dtype_size(first.dtype) == 0) return Refusal::because("%s is packed", dtype_name(first.dtype));
  if (axis_of(desc) < 0 || axis_of(desc) >= first.rank)
    return Refusal::because("axis %d of rank %d", axis_of(desc), first.rank);
  for (uint32_t i = 1; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand) || operand.rank != first.rank)
      return Refusal::because("operand %u has rank %d, the first one %d", i, operand.rank, first.rank);
    if (operand.dtype != first.dtype)
      return Refusal::because("operand %u is %s, the first one %s", i, dtype_name(operand.dtype),
                              dtype_name(first.dtype));
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Parts::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  Mover mover;
  if (Refusal refusal = Mover::make(device, desc.operands[0].dtype, &mover)) return refusal;
  *out = make_primitive<PartsPrimitive>(device, desc, mover);
  return {};
}

}  // namespace tenon::provider::cuda
