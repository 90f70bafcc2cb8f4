// Gathers slices and elements by index.
#include "core/ops/functors/apply.h"
#include "core/ops/functors/positions.h"
#include "core/ops/functors/sized.h"
#include "primitives/infer/broadcast-inl.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

// How users write the ops: the names of the two inputs of each record.
struct IndexingOp {
  std::string_view op;
  std::string_view arguments[2];
  bool from_end = false;  // negative positions count from the end, as in PyTorch's op of this name
  OpName name{op, arguments};
};
constexpr IndexingOp kGatherSlices{"gather_slices", {"input", "index"}, true};
constexpr IndexingOp kGather{"gather", {"input", "index"}};
constexpr IndexingOp kTake{"take", {"input", "index"}, true};
constexpr IndexingOp kIndexSelect{"index_select", {"input", "index"}};
constexpr IndexingOp kTakeAlongDim{"take_along_dim", {"input", "indices"}, true};
constexpr IndexingOp kEmbedding{"embedding", {"weight", "indices"}};

void require_range(const IndexingOp& op, const Tensor& input, int32_t axis, const Tensor& index) {
  if (size_at(input, axis) == 0 && !is_empty(index)) {
    refuse(op.op, "axis {} of {} has length 0, so every index is out of range.", axis, op.arguments[0]);
  }
}

// The positions in `index`, with the convention of `op`.
Tensor positions_of(const IndexingOp& op, const Tensor& index) {
  return op.from_end ? as_index(op.op, op.arguments[1], index) : as_index_from_start(op.op, op.arguments[1], index);
}

// The slices of `input` along `dim` at the positions in `index`.
Tensor slices(const IndexingOp& op, const Tensor& input, int64_t dim, const Tensor& index) {
  require_defined(op.op, op.arguments[0], input);
  const CalledScope scope(op.name);
  const Tensor indices = positions_of(op, index);
  const Tensor source = input.rank() == 0 ? tenon::reshape(input, 1) : input;
  AxisAttributes attributes{};
  attributes.axis = axis_of(op.op, dim, source.rank());
  require_range(op, source, attributes.axis, indices);
  return apply(OpId::gather_slices, {&source, &indices}, &attributes);
}

Tensor elements(const IndexingOp& op, const Tensor& input, int64_t dim, const Tensor& index) {
  const CalledScope scope(op.name);
  const int32_t axis = axis_of(op.op, dim, input.rank());
  if (input.rank() <= 1 && index.rank() <= 1 && (input.rank() == 0 || index.rank() == 0)) {
    const Tensor list = elements(op, tenon::reshape(input, -1), 0, tenon::reshape(index, -1));
    return tenon::reshape(list, ShapeOf(index).list());
  }
  if (input.rank() != index.rank() && is_empty(index)) {  // no positions, for every rank
    return with_history_of(input, tenon::zeros(index.dims(), input.dtype(), input.device()));
  }
  const Tensor indices = positions_of(op, index);
  if (input.rank() > 0) require_range(op, input, axis, indices);
  return gather_at(input, axis, indices);
}

}  // namespace

Tensor gather_at(const Tensor& input, int32_t axis, const Tensor& index) {
  AxisAttributes attributes{};
  attributes.axis = axis;
  return apply(OpId::gather, {&input, &index}, &attributes);
}

Tensor gather_slices(const Tensor& input, int64_t dim, const Tensor& index) {
  return slices(kGatherSlices, input, dim, index);
}

Tensor take(const Tensor& input, const Tensor& index) {
  require_defined(kTake.op, "input", input);
  return slices(kTake, tenon::reshape(input, -1), 0, index);
}

Tensor gather(const Tensor& input, int64_t dim, const Tensor& index) {
  require_defined(kGather.op, "input", input);
  require_defined(kGather.op, "index", index);
  return elements(kGather, input, dim, index);
}

Tensor gather_nd(const Tensor& input, const Tensor& indices, int64_t batch_dims) {
  constexpr std::string_view op = "gather_nd";
  require_defined(op, "input", input);
  const Tensor places = as_index(op, "indices", indices);
  if (places.rank() == 0) refuse(op, "indices has rank 0; its last axis must hold coordinates.");
  const int64_t count = places.dim(-1);
  if (batch_dims < 0 || batch_dims >= places.rank() || count < 1 || batch_dims + count > input.rank()) {
    refuse(op, "{} coordinates after {} batch axes do not fit input of shape {} and indices of shape {}.", count,
           batch_dims, input.dims(), places.dims());
  }
  const int64_t rank = places.rank() - 1 + input.rank() - batch_dims - count;
  if (rank > EP_MAX_RANK) refuse(op, "the result would have rank {}; at most {} is possible.", rank, EP_MAX_RANK);
  CoordinatesAttributes attributes{};
  attributes.batch = static_cast<int32_t>(batch_dims);
  attributes.count = static_cast<int32_t>(count);
  if (rank == 0) {
    const Tensor one = tenon::unsqueeze(places, 0);
    return tenon::reshape(apply(OpId::gather_nd, {&input, &one}, &attributes), IntList());
  }
  for (int32_t k = 0; k < attributes.count; ++k) {
    if (size_at(input, batch_dims + k) == 0 && !is_empty(places)) {
      refuse(op, "axis {} of input has length 0, so every index is out of range.", batch_dims + k);
    }
  }
  return apply(OpId::gather_nd, {&input, &places}, &attributes);
}

Tensor index_select(const Tensor& input, int64_t dim, const Tensor& index) {
  require_defined(kIndexSelect.op, "index", index);
  if (index.rank() > 1) refuse("index_select", "index has rank {}; it must be a list.", index.rank());
  const Tensor result = slices(kIndexSelect, input, dim, index.rank() == 0 ? tenon::reshape(index, 1) : index);
  return input.rank() == 0 && result.elements() == 1 ? tenon::reshape(result, IntList()) : result;
}

Tensor take_along_dim(const Tensor& input, const Tensor& indices, std::optional<int64_t> dim) {
  constexpr std::string_view op = kTakeAlongDim.op;
  require_defined(op, "input", input);
  require_defined(op, "indices", indices);
  if (!dim) return elements(kTakeAlongDim, tenon::reshape(input, -1), 0, tenon::reshape(indices, -1));
  if (input.rank() != indices.rank()) {
    refuse(op, "input of rank {} and indices of rank {} must have the same rank.", input.rank(), indices.rank());
  }
  const int32_t axis = axis_of(op, *dim, input.rank());
  if (input.rank() == 0) return elements(kTakeAlongDim, input, axis, indices);
  SymDims shapes[] = {sizes(input), sizes(indices)};
  shapes[0][axis] = shapes[1][axis] = 1;
  SymDims input_dims = value_or_throw(infer::broadcast<SymDim>(op, shapes));
  SymDims index_dims = input_dims;
  input_dims[axis] = size_at(input, axis);
  index_dims[axis] = size_at(indices, axis);
  return elements(kTakeAlongDim, tenon::expand(input, SizeList(input_dims)), axis,
                  tenon::expand(indices, SizeList(index_dims)));
}

Tensor embedding(const Tensor& weight, const Tensor& indices) {
  require_defined("embedding", "weight", weight);
  return slices(kEmbedding, weight, 0, indices);
}

}  // namespace tenon::functors
