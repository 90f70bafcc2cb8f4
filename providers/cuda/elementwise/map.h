// Map: dst[...] = row(src[...], ...) over strided operands. Planned once, with the dims if they are known; launched on
// addresses.
#pragma once

#include <cstdint>
#include <span>

#include "providers/cuda/primitive.h"

namespace tenon::provider::cuda {

struct MapPlan {
  Family family = Family::MOVE;
  char kernel[40] = {};
  int32_t op = 0;               // for kernels that hold all rows of a class
  int32_t chunk = map_chunk;    // elements per thread
  int32_t count = 0;            // operands: [0] dst, then sources
  int32_t parameter_class = 0;  // launch scalars 0 and 1 are a and b in this class; 0: the row has none
  int32_t fault_operand = 0;    // whose bad values fault; 0: none can
  bool moves_bits = false;      // scalars are given as elements, not in the class computed in
  int32_t dtypes[map_max_operands] = {};
  bool scalar[map_max_operands] = {};  // its value is launch scalar `index - 1`
};

// Dims and strides of one launch, axes in any order that suits.
struct MapShape {
  int32_t rank = 0;
  int64_t dims[EP_MAX_RANK] = {};
  int64_t strides[map_max_operands][EP_MAX_RANK] = {};
};

// The same elements with as few axes as can be, the destination's least stride innermost; 0 strides for scalars.
MapShape folded(const MapPlan& plan, std::span<const OperandShape> operands);

// The axis along which a launch of `shape` must be halved, so that in the end each has less than 2^31 chunks; -1: none.
int32_t axis_to_halve(const MapShape& shape, int32_t chunk);

struct MapOperands {
  CUdeviceptr addresses[map_max_operands] = {};
  uint64_t scalars[map_max_operands] = {};  // bits, as plan.moves_bits says
  uint64_t parameters[2] = {};
};

// The arguments of a kernel for axes of `shape`, without a fault target.
MapArguments map_arguments(const MapPlan& plan, const MapShape& shape, const MapOperands& operands);

class Map {
 public:
  Map() = default;
  // `function` is the kernel of the plan.
  Map(const MapPlan& plan, CUfunction function) : plan_(plan), function_(function) {}
  const MapPlan& plan() const { return plan_; }

  // Reads the scalars of a launch: operands that are scalars from slot `index - 1`, parameters from `first_parameter`
  // on.
  void read_scalars(const ep_scalar* scalars, uint32_t count, uint32_t first_parameter, MapOperands* operands) const;
  ep_status run(ep_stream* stream, const MapShape& shape, const MapOperands& operands, uint64_t tag,
                ep_error** error) const;

 private:
  ep_status run_part(ep_stream* stream, const MapShape& shape, const MapOperands& operands, const FaultTarget& fault,
                     ep_error** error) const;

  MapPlan plan_;
  CUfunction function_ = nullptr;
};

}  // namespace tenon::provider::cuda
