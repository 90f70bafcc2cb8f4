#include <algorithm>

#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/movement/mover.h"
#include "providers/cuda/ordering/ordering.h"

namespace tenon::provider::cuda {
namespace {

class OneHotPrimitive final : public ep_primitive {
 public:
  OneHotPrimitive(const ep_primitive_desc& desc, CUfunction function)
      : desc_(desc), axis_(desc.attributes.one_hot.axis), function_(function) {
    plan_.count = 3;
    plan_.dtypes[0] = bits_dtype(dtype_size(desc.operands[0].dtype));
    plan_.dtypes[1] = desc.operands[1].dtype;
    plan_.dtypes[2] = EP_DTYPE_u8;  // positions are declared as bytes, so strides count positions
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    if (launch.scalar_count < 2)
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "one_hot has no launch scalars 0 and 1.");
    const OperandShape dst = shape_of(desc_.operands[0], launch.shapes, 0);
    const OperandShape src = shape_of(desc_.operands[1], launch.shapes, 1);
    int64_t in_src[EP_MAX_RANK] = {};
    int64_t positions[EP_MAX_RANK] = {};
    std::copy_n(src.strides, axis_, in_src);
    std::copy_n(src.strides + axis_, src.rank - axis_, in_src + axis_ + 1);
    positions[axis_] = 1;
    const OperandShape three[] = {dst, {dst.dims, in_src, dst.rank}, {dst.dims, positions, dst.rank}};
    OneHotArguments hot{};
    hot.length = dst.dims[axis_];
    for (int i = 0; i < 2; ++i) hot.values[i] = element_bits(launch.scalars[i], desc_.operands[0].dtype);
    MapOperands operands;
    operands.addresses[0] = address_of(launch.operands[0]);
    operands.addresses[1] = address_of(launch.operands[1]);
    return cut(plan_, folded(plan_, three), operands, [&](const MapShape& piece, const MapOperands& of_piece) {
      hot.map = map_arguments(plan_, piece, of_piece);
      return launch_kernel(stream, function_, blocks_for(hot.map.chunks), &hot, error);
    });
  }

 private:
  ep_primitive_desc desc_;
  int32_t axis_;
  CUfunction function_;
  MapPlan plan_;
};

}  // namespace

Refusal OneHot::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 2 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC");
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = desc.operands[1];
  if (class_of(dst.dtype) == 0) return Refusal::because("no kernel writes %s", dtype_name(dst.dtype));
  if (src.dtype != EP_DTYPE_i32 && src.dtype != EP_DTYPE_i64)
    return Refusal::because("positions of %s", dtype_name(src.dtype));
  const int32_t axis = desc.attributes.one_hot.axis;
  if (is_scalar(src) || dst.rank != src.rank + 1) return Refusal::because("ranks %d and %d", dst.rank, src.rank);
  if (axis < 0 || axis >= dst.rank) return Refusal::because("axis %d of rank %d", axis, dst.rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal OneHot::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  SizedKernels kernels;
  if (Refusal refusal = kernels.find(device, Family::SELECT, "one_hot")) return refusal;
  *out = make_primitive<OneHotPrimitive>(device, desc, kernels.of(dtype_size(desc.operands[0].dtype)));
  return {};
}

}  // namespace tenon::provider::cuda
