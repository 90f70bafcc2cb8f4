// matmul by a kernel that computes one element per thread. It takes every type, stride and alignment.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/matmul/matmul.h"

namespace tenon::provider::cuda {
namespace {

class PlainPrimitive final : public ep_primitive {
 public:
  PlainPrimitive(const ep_primitive_desc& desc, CUfunction function, Tail tail)
      : desc_(desc),
        function_(function),
        tail_(std::move(tail)),
        src_(find_operand(desc, EP_ROLE_SRC)),
        src_b_(find_operand(desc, EP_ROLE_SRC_B)),
        bias_(find_operand(desc, EP_ROLE_BIAS)) {}

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    MatmulArguments matmul{};
    const OperandShape dst = shape(launch, 0);
    matmul.rank = dst.rank;
    matmul.k = shape(launch, src_).dims[dst.rank - 1];
    matmul.count = 1;
    for (int32_t axis = 0; axis < dst.rank; ++axis) matmul.count *= dst.dims[axis];
    std::copy_n(dst.dims, dst.rank, matmul.dims);
    read(launch, 0, &matmul.dst, &matmul.dst_dtype, matmul.dst_strides);
    read(launch, src_, &matmul.a, &matmul.a_dtype, matmul.a_strides);
    read(launch, src_b_, &matmul.b, &matmul.b_dtype, matmul.b_strides);
    if (bias_ >= 0) read(launch, bias_, &matmul.bias, &matmul.bias_dtype, matmul.bias_strides);
    const ep_status status = launch_kernel(stream, function_, blocks_for(matmul.count), &matmul, error);
    return status == EP_STATUS_OK ? tail_.run(stream, launch, desc_.operands, error) : status;
  }

 private:
  OperandShape shape(const ep_launch& launch, int32_t i) const {
    return shape_of(desc_.operands[i], launch.shapes, static_cast<uint32_t>(i));
  }
  void read(const ep_launch& launch, int32_t i, uint64_t* address, int32_t* dtype, int64_t* strides) const {
    const OperandShape given = shape(launch, i);
    *address = address_of(launch.operands[i]);
    *dtype = desc_.operands[i].dtype;
    std::copy_n(given.strides, given.rank, strides);
  }

  ep_primitive_desc desc_;
  CUfunction function_;
  Tail tail_;
  int32_t src_;
  int32_t src_b_;
  int32_t bias_;
};

}  // namespace

Refusal PlainMatmul::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count < 3 || desc.operands[0].role != EP_ROLE_DST || operand(desc, EP_ROLE_SRC) == nullptr ||
      operand(desc, EP_ROLE_SRC_B) == nullptr) {
    return Refusal::because("an operand is missing");
  }
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t dtype_class = class_of(dtype);
  if (dtype_class == 0 || dtype_class == EP_DTYPE_bool)
    return Refusal::because("no kernel computes a matmul to %s", dtype_name(dtype));
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand) || operand.rank != desc.operands[0].rank || operand.rank < 2)
      return Refusal::because("operand %u has rank %d", i, operand.rank);
    if (class_of(operand.dtype) != dtype_class)
      return Refusal::because("operand %u is %s, the result %s", i, dtype_name(operand.dtype), dtype_name(dtype));
  }
  if (desc.accumulate_dtype != 0 && desc.accumulate_dtype != dtype_class)
    return Refusal::because("accumulation in %s", dtype_name(desc.accumulate_dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return why_no_epilogues(desc, 0);
}

Refusal PlainMatmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const std::string name = fmt::format("matmul_{}", class_name(class_of(desc.operands[0].dtype)));
  CUfunction function = nullptr;
  if (Refusal refusal = find_kernel(device, Family::MATMUL, name.c_str(), &function)) return refusal;
  Tail tail;
  if (Refusal refusal = add_epilogues(device, desc, 0, &tail)) return refusal;
  *out = make_primitive<PlainPrimitive>(device, desc, function, std::move(tail));
  return {};
}

}  // namespace tenon::provider::cuda
