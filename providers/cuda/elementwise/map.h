// Map: dst[...] = f(src[...], ...) over strided operands, where f is a scalar function. A Map is planned once, with the
// dims if they are known, and launched on addresses.
#pragma once

#include <cstdint>
#include <span>

#include "providers/cuda/primitive.h"

namespace tenon::provider::cuda {

struct MapPlan {
  Family family = Family::MOVE;
  char kernel[40] = {};
  int32_t op = 0;               // scalar function, for kernels that contain a whole class
  int32_t chunk = map_chunk;    // elements per thread
  int32_t count = 0;            // operands: [0] dst, then sources
  int32_t parameter_class = 0;  // class of the parameters a and b, which are launch scalars 0 and 1; 0: no parameters
  int32_t fault_operand = 0;    // operand that faults on bad values; 0: none
  bool moves_bits = false;      // scalars are passed in their dtype, not in the compute class
  int32_t dtypes[map_max_operands] = {};
  bool scalar[map_max_operands] = {};  // the operand's value is launch scalar `index - 1`
};

// Dims and strides of one launch, with the axes in any order.
struct MapShape {
  int32_t rank = 0;
  int64_t dims[EP_MAX_RANK] = {};
  int64_t strides[map_max_operands][EP_MAX_RANK] = {};
};

// Merges axes and sorts them, the destination's least stride innermost. Scalars get strides of 0.
MapShape folded(const MapPlan& plan, std::span<const OperandShape> operands);

// A launch has fewer than 2^31 chunks. Returns the axis along which a larger `shape` must be halved, or -1.
int32_t axis_to_halve(const MapShape& shape, int32_t chunk);

struct MapOperands {
  CUdeviceptr addresses[map_max_operands] = {};
  uint64_t scalars[map_max_operands] = {};  // bits, in the form given by plan.moves_bits
  uint64_t parameters[2] = {};
};

// The kernel arguments for `shape`. The fault target is left empty.
MapArguments map_arguments(const MapPlan& plan, const MapShape& shape, const MapOperands& operands);

// Cuts `shape` into pieces of fewer than 2^31 chunks with their operand addresses, and calls visit(piece, operands) for
// each until a call fails.
template <class Visit>
ep_status cut(const MapPlan& plan, const MapShape& shape, const MapOperands& operands, const Visit& visit) {
  const int32_t axis = axis_to_halve(shape, plan.chunk);
  if (axis < 0) return visit(shape, operands);
  MapShape part = shape;
  MapOperands from = operands;
  const int64_t half = (shape.dims[axis] / 2 + map_chunk - 1) / map_chunk * map_chunk;
  part.dims[axis] = half;
  if (const ep_status status = cut(plan, part, from, visit); status != EP_STATUS_OK) return status;
  part.dims[axis] = shape.dims[axis] - half;
  for (int32_t i = 0; i < plan.count; ++i) {
    if (!plan.scalar[i]) {
      from.addresses[i] += static_cast<uint64_t>(half * shape.strides[i][axis] * dtype_size(plan.dtypes[i]));
    }
  }
  return cut(plan, part, from, visit);
}

class Map {
 public:
  Map() = default;
  // `function` is the kernel of the plan.
  Map(const MapPlan& plan, CUfunction function) : plan_(plan), function_(function) {}
  const MapPlan& plan() const { return plan_; }

  // Reads the scalars of a launch. A scalar operand takes slot `index - 1`; parameters begin at slot `first_parameter`.
  void read_scalars(const ep_scalar* scalars, uint32_t count, uint32_t first_parameter, MapOperands* operands) const;
  ep_status run(ep_stream* stream, const MapShape& shape, const MapOperands& operands, uint64_t tag,
                ep_error** error) const;

 private:
  MapPlan plan_;
  CUfunction function_ = nullptr;
};

}  // namespace tenon::provider::cuda
