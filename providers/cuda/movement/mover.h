// Mover: copies strided tensors as bits. Since values do not matter, neighbours of a narrow type are moved together.
#pragma once

#include <array>

#include "providers/cuda/elementwise/map.h"

namespace tenon::provider::cuda {

// One kernel per element size: 1, 2, 4 and 8 bytes.
class SizedKernels {
 public:
  // Finds <name>_1, <name>_2, <name>_4 and <name>_8. The device's context is current. Throws DriverError.
  Refusal find(ep_device& device, Family family, const char* name);
  CUfunction of(int64_t size) const { return functions_[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3]; }

 private:
  std::array<CUfunction, 4> functions_{};
};

// The unsigned dtype of `size` bytes.
int32_t bits_dtype(int64_t size);

// Joins neighbours along the innermost axis of operands 0 to `moved` - 1 to elements of up to 4 bytes, if strides and
// addresses allow it: divides the innermost dim and the strides of these operands, and sets their dtypes in `plan`.
// `free` is a number of elements that must also be divisible, such as the stride of an indexed axis.
void widen(int32_t moved, int64_t free, const MapOperands& operands, MapPlan* plan, MapShape* shape);

class Mover {
 public:
  // Moves elements of `dtype`. Throws DriverError.
  static Refusal make(ep_device& device, int32_t dtype, Mover* out);
  // `dst` and `src` have the same dims.
  ep_status run(ep_stream* stream, const OperandShape& dst, CUdeviceptr to, const OperandShape& src, CUdeviceptr from,
                ep_error** error) const;

 private:
  MapPlan plan_;
  SizedKernels kernels_;
};

}  // namespace tenon::provider::cuda
