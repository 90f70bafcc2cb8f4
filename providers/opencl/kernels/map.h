// The parameters of kernels over elements.
#pragma once

#include <cstdint>

#include "providers/opencl/kernels/element.h"

namespace tenon::provider::opencl {

inline constexpr int32_t most_map_operands = 4;
inline constexpr int32_t most_map_inputs = most_map_operands - 1;

// Mirrors struct map_parameters of programs/shape.cl.
struct MapParameters {
  uint64_t count;
  uint64_t offsets[most_map_operands];
  uint64_t scalars[most_map_inputs];
  uint64_t dims[EP_MAX_RANK];
  uint64_t strides[most_map_operands][EP_MAX_RANK];
  int32_t rank;
  int32_t op;
  int32_t src_dtype;
  int32_t dst_dtype;
  uint32_t scalar_mask;
  uint32_t fault_slot;
};

// Sets rank, dims and count.
void set_dims(const int64_t* dims, int32_t rank, MapParameters* p);

// The compiler option that sets EP_BITS, the unsigned type as wide as `dtype`.
std::string bits_option(int32_t dtype);

}  // namespace tenon::provider::opencl
