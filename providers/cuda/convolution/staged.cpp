#include "providers/cuda/convolution/staged.h"

#include "providers/cuda/elementwise/elementwise.h"

namespace tenon::provider::cuda {

Refusal Staged::make(ep_device& device, int32_t operand, const ep_operand_desc& given, const ep_operand_desc& dense,
                     uint64_t offset, Staged* out) {
  out->operand_ = operand;
  out->given_ = given;
  out->dense_ = dense;
  out->offset_ = offset;
  out->casts_ = given.dtype != dense.dtype;
  if (!out->casts_) return Mover::make(device, dense.dtype, &out->mover_);
  ep_primitive_desc copy{};
  copy.kind = EP_PRIMITIVE_copy;
  copy.operand_count = 2;
  copy.operands[0] = dense;
  copy.operands[0].role = EP_ROLE_DST;
  copy.operands[1] = given;
  copy.operands[1].role = EP_ROLE_SRC;
  const Planned planned = plan_elementwise(copy);
  return planned.refusal ? planned.refusal : make_map(device, planned.plan, &out->cast_);
}

ep_status Staged::run(ep_stream* stream, const ep_launch& launch, ep_error** error) const {
  const CUdeviceptr outside = address_of(launch.operands[operand_]), inside = address_of(in(launch));
  const OperandShape given = shape_of(given_, nullptr, 0), dense = shape_of(dense_, nullptr, 0);
  if (operand_ == 0) return mover_.run(stream, given, outside, dense, inside, error);
  if (!casts_) return mover_.run(stream, dense, inside, given, outside, error);
  const OperandShape shapes[] = {dense, given};
  MapOperands addresses;
  addresses.addresses[0] = inside;
  addresses.addresses[1] = outside;
  return cast_.run(stream, folded(cast_.plan(), shapes), addresses, launch.tag, error);
}

}  // namespace tenon::provider::cuda
