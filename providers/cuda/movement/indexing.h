// Indexing: the walk over elements whose place in a whole tensor is given by indices. gather reads the whole, scatter
// writes it.
#pragma once

#include "providers/cuda/elementwise/map.h"

namespace tenon::provider::cuda {

// Why there is no such walk. `axis` and `mode` are attributes; `walked` is the tensor with one element per place.
Refusal why_no_indexing(int32_t axis, int32_t mode, const ep_operand_desc& walked, const ep_operand_desc& whole,
                        const ep_operand_desc& indices);

// The walk of a launch. Operands of the shape: the walked tensor, the whole tensor, the indices and, if `numbered`, the
// row-major number of an element.
struct Indexing {
  MapShape shape;
  int32_t coordinates = 1;
  int64_t coordinate_stride = 0;
  int64_t lengths[EP_MAX_RANK] = {};
  int64_t strides[EP_MAX_RANK] = {};
};
Indexing indexing_of(int32_t axis, int32_t mode, const OperandShape& walked, const OperandShape& whole,
                     const OperandShape& indices, bool numbered);

// The plan of a walk over elements of `dtype` by indices of `index_dtype`.
MapPlan indexing_plan(int32_t dtype, int32_t index_dtype, bool numbered);

// The kernel arguments of `piece`, a piece of the shape of `indexing`. The fault target is left empty.
IndexArguments index_arguments(const MapPlan& plan, const Indexing& indexing, const MapShape& piece,
                               const MapOperands& operands);

}  // namespace tenon::provider::cuda
