// rotary: rotates pairs of elements in each row by the angles of its position.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "providers/cuda/attention/attention.h"
#include "providers/cuda/elementwise/scalar_value.h"

namespace tenon::provider::cuda {
namespace {

class RotaryPrimitive final : public ep_primitive {
 public:
  RotaryPrimitive(const ep_primitive_desc& desc, CUfunction function)
      : desc_(desc), function_(function), indices_(find_operand(desc, EP_ROLE_INDICES)) {}

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    RotaryArguments rotary{};
    const OperandShape dst = read(launch, 0, &rotary.dst, rotary.dst_strides);
    read(launch, find_operand(desc_, EP_ROLE_SRC), &rotary.src, rotary.src_strides);
    const int32_t cosines = find_operand(desc_, EP_ROLE_SRC_B);
    // With indices, the tables have two axes, and their strides are stored in the last two entries.
    const int32_t before = indices_ < 0 ? 0 : 2;
    const OperandShape table = read(launch, cosines, &rotary.cosines, rotary.cosine_strides + before);
    read(launch, find_operand(desc_, EP_ROLE_SRC_C), &rotary.sines, rotary.sine_strides + before);
    std::copy_n(dst.dims, 4, rotary.dims);
    rotary.dtype = desc_.operands[0].dtype;
    rotary.angle_dtype = desc_.operands[cosines].dtype;
    rotary.interleaved = desc_.attributes.rotary.mode == EP_ROTARY_INTERLEAVED;
    rotary.pairs = table.dims[table.rank - 1];
    const Geometry geometry = blocks_for(dst.dims[0] * dst.dims[1] * dst.dims[2] * (dst.dims[3] - rotary.pairs));
    if (indices_ < 0) return launch_kernel(stream, function_, geometry, &rotary, error);
    read(launch, indices_, &rotary.indices, rotary.index_strides);
    rotary.wide_indices = desc_.operands[indices_].dtype == EP_DTYPE_i64;
    rotary.table_rows = table.dims[0];
    const auto run = [&](const FaultTarget& fault) {
      rotary.fault = fault;
      return launch_kernel(stream, function_, geometry, &rotary, error);
    };
    return launch_watched(stream, launch.tag, indices_, run, error);
  }

 private:
  OperandShape read(const ep_launch& launch, int32_t i, uint64_t* address, int64_t* strides) const {
    const OperandShape given = shape_of(desc_.operands[i], launch.shapes, static_cast<uint32_t>(i));
    *address = address_of(launch.operands[i]);
    std::copy_n(given.strides, given.rank, strides);
    return given;
  }

  ep_primitive_desc desc_;
  CUfunction function_;
  int32_t indices_;
};

}  // namespace

Refusal Rotary::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t mode = desc.attributes.rotary.mode;
  const int32_t dtype_class = class_of(dtype);
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* cosines = operand(desc, EP_ROLE_SRC_B);
  const ep_operand_desc* sines = operand(desc, EP_ROLE_SRC_C);
  const ep_operand_desc* indices = operand(desc, EP_ROLE_INDICES);
  if (desc.operands[0].role != EP_ROLE_DST || src == nullptr || cosines == nullptr || sines == nullptr)
    return Refusal::because("an operand is missing");
  if ((dtype_class != EP_DTYPE_f32 && dtype_class != EP_DTYPE_f64) || src->dtype != dtype || src->rank != 4 ||
      desc.operands[0].rank != 4)
    return Refusal::because("%s of rank %d", dtype_name(src->dtype), src->rank);
  if (mode != EP_ROTARY_HALVES && mode != EP_ROTARY_INTERLEAVED) return Refusal::because("mode %d", mode);
  if (cosines->dtype != sines->dtype || (cosines->dtype != EP_DTYPE_f32 && cosines->dtype != dtype))
    return Refusal::because("angles of %s", dtype_name(cosines->dtype));
  const int32_t rank = indices == nullptr ? 4 : 2;
  if (cosines->rank != rank || sines->rank != rank) return Refusal::because("angles of rank %d", cosines->rank);
  if (indices != nullptr && (indices->rank != 2 || (indices->dtype != EP_DTYPE_i32 && indices->dtype != EP_DTYPE_i64)))
    return Refusal::because("indices of %s and rank %d", dtype_name(indices->dtype), indices->rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Rotary::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const std::string name = fmt::format("rotary_{}", class_name(class_of(desc.operands[0].dtype)));
  CUfunction function = nullptr;
  if (Refusal refusal = find_kernel(device, Family::ATTENTION, name.c_str(), &function)) return refusal;
  *out = make_primitive<RotaryPrimitive>(device, desc, function);
  return {};
}

}  // namespace tenon::provider::cuda
