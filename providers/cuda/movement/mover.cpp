#include "providers/cuda/movement/mover.h"

#include <fmt/core.h>

#include <string>

namespace tenon::provider::cuda {
namespace {

constexpr int64_t widest_element = 4;  // so that a chunk of map_chunk elements is one access of 16 bytes

bool are_multiples(const MapShape& shape, int32_t operand, int64_t by) {
  const int32_t inner = shape.rank - 1;
  if (shape.strides[operand][inner] != 1) return false;
  for (int32_t axis = 0; axis < inner; ++axis) {
    if (shape.strides[operand][axis] % by != 0) return false;
  }
  return true;
}

}  // namespace

Refusal SizedKernels::find(ep_device& device, Family family, const char* name) {
  for (const int64_t size : {1, 2, 4, 8}) {
    const std::string kernel = fmt::format("{}_{}", name, size);
    CUfunction& function = functions_[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
    if (Refusal refusal = find_kernel(device, family, kernel.c_str(), &function)) return refusal;
  }
  return {};
}

int32_t bits_dtype(int64_t size) {
  switch (size) {
    case 1: return EP_DTYPE_u8;
    case 2: return EP_DTYPE_u16;
    case 4: return EP_DTYPE_u32;
    default: return EP_DTYPE_u64;
  }
}

void widen(int32_t moved, int64_t free, const MapOperands& operands, MapPlan* plan, MapShape* shape) {
  const int32_t inner = shape->rank - 1;
  int64_t size = dtype_size(plan->dtypes[0]);
  while (size < widest_element && shape->dims[inner] % 2 == 0 && free % 2 == 0) {
    for (int32_t i = 0; i < moved; ++i) {
      const bool aligned = operands.addresses[i] % static_cast<uint64_t>(2 * size) == 0;
      if (!aligned || !are_multiples(*shape, i, 2)) return;
    }
    size *= 2;
    free /= 2;
    shape->dims[inner] /= 2;
    for (int32_t i = 0; i < moved; ++i) {
      plan->dtypes[i] = bits_dtype(size);
      for (int32_t axis = 0; axis < inner; ++axis) shape->strides[i][axis] /= 2;
    }
  }
}

Refusal Mover::make(ep_device& device, int32_t dtype, Mover* out) {
  out->plan_.count = 2;
  out->plan_.moves_bits = true;
  out->plan_.dtypes[0] = out->plan_.dtypes[1] = bits_dtype(dtype_size(dtype));
  return out->kernels_.find(device, Family::MOVE, "bits");
}

ep_status Mover::run(ep_stream* stream, const OperandShape& dst, CUdeviceptr to, const OperandShape& src,
                     CUdeviceptr from, ep_error** error) const {
  MapPlan plan = plan_;
  MapOperands operands;
  operands.addresses[0] = to;
  operands.addresses[1] = from;
  const OperandShape both[] = {dst, src};
  MapShape shape = folded(plan, both);
  widen(2, 0, operands, &plan, &shape);
  return Map(plan, kernels_.of(dtype_size(plan.dtypes[0]))).run(stream, shape, operands, 0, error);
}

}  // namespace tenon::provider::cuda
