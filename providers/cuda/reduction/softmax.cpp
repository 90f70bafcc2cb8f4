// softmax and log-softmax along one axis.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/reduction/reduction.h"

namespace tenon::provider::cuda {
namespace {

constexpr int64_t held_warp = held_warp_chunks * map_chunk * row_warp;
constexpr int64_t held_warp_long = held_warp_long_chunks * map_chunk * row_warp;
constexpr int64_t held_block = held_block_chunks * map_chunk * row_block;
constexpr int64_t held_block_long = held_block_long_chunks * map_chunk * row_block;
constexpr int64_t short_row = 8;

constexpr const char* kernel_names[softmax_kernels] = {"solo",           "warp",       "block",          "warp_held",
                                                       "warp_held_long", "block_held", "block_held_long"};

class SoftmaxPrimitive final : public ep_primitive {
 public:
  SoftmaxPrimitive(const ep_primitive_desc& desc, const CUfunction* functions) : desc_(desc) {
    std::copy_n(functions, softmax_kernels, functions_);
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    const OperandShape dst = shape_of(desc_.operands[0], launch.shapes, 0);
    const OperandShape src = shape_of(desc_.operands[1], launch.shapes, 1);
    const int32_t axis = desc_.attributes.softmax.axis;
    SoftmaxArguments softmax{};
    softmax.src = address_of(launch.operands[1]);
    softmax.dst = address_of(launch.operands[0]);
    softmax.dtype = desc_.operands[0].dtype;
    softmax.log = desc_.attributes.softmax.log;
    softmax.length = src.dims[axis];
    softmax.src_stride = src.strides[axis];
    softmax.dst_stride = dst.strides[axis];
    softmax.rows = axes_of(src, dst, 1U << axis, false);
    const bool contiguous = softmax.src_stride == 1 && softmax.dst_stride == 1;
    const int64_t size = dtype_size(softmax.dtype);
    softmax.vector = contiguous && softmax.length % map_chunk == 0 &&
                     rows_are_aligned(softmax.src, size, softmax.rows, softmax.rows.src) &&
                     rows_are_aligned(softmax.dst, size, softmax.rows, softmax.rows.dst);
    return run(stream, softmax, contiguous, error);
  }

 private:
  ep_status run(ep_stream* stream, const SoftmaxArguments& softmax, bool contiguous, ep_error** error) const {
    // A kernel that holds its row computes one row per team.
    const bool may_be_held = contiguous && softmax.rows.count <= most_blocks;
    const SoftmaxPlan plan = plan_softmax(softmax.length, may_be_held, softmax.dtype == EP_DTYPE_f64);
    const Geometry geometry = geometry_for(softmax.rows.count, plan.team);
    return launch_kernel(stream, functions_[static_cast<size_t>(plan.kernel)], geometry, &softmax, error);
  }

  ep_primitive_desc desc_;
  CUfunction functions_[softmax_kernels] = {};
};

}  // namespace

SoftmaxPlan plan_softmax(int64_t length, bool contiguous, bool is_f64) {
  if (contiguous && !is_f64) {
    if (length <= held_warp) return {Team::WARP, SoftmaxKernel::WARP_HELD};
    if (length <= held_warp_long) return {Team::WARP, SoftmaxKernel::WARP_HELD_LONG};
    if (length <= held_block) return {Team::BLOCK, SoftmaxKernel::BLOCK_HELD};
    if (length <= held_block_long) return {Team::BLOCK, SoftmaxKernel::BLOCK_HELD_LONG};
    return {Team::BLOCK, SoftmaxKernel::BLOCK};
  }
  // If consecutive rows are neighbours in memory, neighbouring threads should compute neighbouring rows.
  if (length <= short_row || (!contiguous && length <= held_warp)) return {Team::SOLO, SoftmaxKernel::SOLO};
  if (length <= held_warp) return {Team::WARP, SoftmaxKernel::WARP};
  return {Team::BLOCK, SoftmaxKernel::BLOCK};
}

Refusal Softmax::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 2 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC");
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t dtype_class = class_of(dtype);
  if ((dtype_class != EP_DTYPE_f32 && dtype_class != EP_DTYPE_f64) || desc.operands[1].dtype != dtype)
    return Refusal::because("no kernel computes a softmax of %s to %s", dtype_name(desc.operands[1].dtype),
                            dtype_name(dtype));
  if (is_scalar(desc.operands[1]) || desc.operands[0].rank != desc.operands[1].rank)
    return Refusal::because("ranks differ");
  const int32_t axis = desc.attributes.softmax.axis;
  if (axis < 0 || axis >= desc.operands[0].rank)
    return Refusal::because("axis %d of rank %d", axis, desc.operands[0].rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Softmax::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const bool is_f64 = desc.operands[0].dtype == EP_DTYPE_f64;
  CUfunction functions[softmax_kernels] = {};
  for (size_t i = 0; i < (is_f64 ? softmax_kernels_f64 : softmax_kernels); ++i) {
    const std::string name = fmt::format("softmax_{}_{}", is_f64 ? "f64" : "f32", kernel_names[i]);
    if (Refusal refusal = find_kernel(device, Family::SOFTMAX, name.c_str(), &functions[i])) return refusal;
  }
  *out = make_primitive<SoftmaxPrimitive>(device, desc, functions);
  return {};
}

}  // namespace tenon::provider::cuda
