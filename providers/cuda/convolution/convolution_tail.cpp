#include "providers/cuda/convolution/convolution_tail.h"

#include <algorithm>
#include <array>

#include "providers/cuda/elementwise/elementwise.h"

namespace tenon::provider::cuda {
namespace {

// True if the product needs f32 because a bias or epilogues follow it.
bool is_wide(const ep_primitive_desc& desc) {
  const bool has_tail = find_operand(desc, EP_ROLE_BIAS) >= 0 || desc.epilogue_count != 0;
  return has_tail && dtype_size(desc.operands[0].dtype) == 2;
}

// A copy of `desc` with f32 operands and a contiguous result.
ep_primitive_desc widened(const ep_primitive_desc& desc, bool channels_last) {
  ep_primitive_desc wide = desc;
  for (uint32_t i = 0; i < wide.operand_count; ++i) wide.operands[i].dtype = EP_DTYPE_f32;
  set_dense_strides(&wide.operands[0], channels_last);
  return wide;
}

// Expands the bias to the dims of the result.
void spread_bias(ep_primitive_desc* desc) {
  const int32_t bias = find_operand(*desc, EP_ROLE_BIAS);
  if (bias < 0) return;
  ep_operand_desc& operand = desc->operands[bias];
  const int64_t stride = operand.strides[0];
  operand.rank = desc->operands[0].rank;
  std::copy_n(desc->operands[0].dims, operand.rank, operand.dims);
  std::fill_n(operand.strides, operand.rank, 0);
  operand.strides[1] = stride;
}

// The descriptor that the tail works on: `desc`, or a copy in f32.
ep_primitive_desc tail_desc(const ep_primitive_desc& desc, bool channels_last) {
  ep_primitive_desc result = is_wide(desc) ? widened(desc, channels_last) : desc;
  spread_bias(&result);
  return result;
}

}  // namespace

void set_dense_strides(ep_operand_desc* operand, bool channels_last) {
  int64_t stride = 1;
  const auto set = [&](int32_t axis) {
    operand->strides[axis] = stride;
    stride *= operand->dims[axis];
  };
  if (channels_last) set(1);
  for (int32_t axis = operand->rank - 1; axis >= 0; --axis) {
    if (axis != 1 || !channels_last) set(axis);
  }
}

uint64_t part_bytes(int64_t elements, int32_t size) {
  constexpr uint64_t alignment = 256;
  return (static_cast<uint64_t>(elements * size) + alignment - 1) / alignment * alignment;
}

ep_operand_desc ConvolutionTail::product_of(const ep_primitive_desc& desc, bool channels_last) {
  return tail_desc(desc, channels_last).operands[0];
}

Refusal ConvolutionTail::why_not(const ep_primitive_desc& desc) { return why_no_epilogues(tail_desc(desc, false), 0); }

Refusal ConvolutionTail::make(ep_device& device, const ep_primitive_desc& desc, bool channels_last,
                              ConvolutionTail* out) {
  out->desc_ = tail_desc(desc, channels_last);
  out->dst_ = desc.operands[0];
  const int32_t bias = find_operand(desc, EP_ROLE_BIAS);
  if (bias >= 0) {
    if (Refusal refusal = add_bias(device, out->desc_, bias, &out->tail_, &desc)) return refusal;
  }
  if (Refusal refusal = add_epilogues(device, out->desc_, 0, &out->tail_, &desc)) return refusal;
  if (!is_wide(desc)) return {};
  int64_t elements = 1;
  for (int32_t axis = 0; axis < out->dst_.rank; ++axis) elements *= out->dst_.dims[axis];
  out->workspace_ = part_bytes(elements, dtype_size(EP_DTYPE_f32));
  ep_primitive_desc narrowing{};
  narrowing.kind = EP_PRIMITIVE_copy;
  narrowing.operand_count = 2;
  narrowing.operands[0] = out->dst_;
  narrowing.operands[1] = out->product();
  narrowing.operands[1].role = EP_ROLE_SRC;
  const Planned planned = plan_elementwise(narrowing);
  if (planned.refusal) return planned.refusal;
  return make_map(device, planned.plan, &out->narrowing_);
}

ep_status ConvolutionTail::run(ep_stream* stream, const ep_launch& launch, ep_buffer product, ep_error** error) const {
  std::array<ep_buffer, EP_MAX_OPERANDS> operands;
  std::copy_n(launch.operands, launch.operand_count, operands.begin());
  operands[0] = product;
  ep_launch rest = launch;
  rest.operands = operands.data();
  const ep_status status = tail_.run(stream, rest, desc_.operands, error);
  if (status != EP_STATUS_OK || workspace_ == 0) return status;
  const OperandShape shapes[] = {shape_of(dst_, nullptr, 0), shape_of(desc_.operands[0], nullptr, 0)};
  MapOperands addresses;
  addresses.addresses[0] = address_of(launch.operands[0]);
  addresses.addresses[1] = address_of(product);
  return narrowing_.run(stream, folded(narrowing_.plan(), shapes), addresses, launch.tag, error);
}

}  // namespace tenon::provider::cuda
