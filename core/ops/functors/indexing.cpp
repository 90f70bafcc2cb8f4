// Gathers slices and elements by index.
#include "core/ops/functors/apply.h"

namespace tenon::functors {
namespace {

// `index` as i32 or i64. In errors of `op` it is called `name`.
Tensor as_index(std::string_view op, std::string_view name, const Tensor& index) {
  require_defined(op, name, index);
  if (!is_integer(index.dtype())) refuse("{}: {} must be integers, not {}.", op, name, dtype_name(index.dtype()));
  return index.dtype() == DType::i32 ? index : tenon::cast(index, DType::i64);
}

void require_range(std::string_view op, const Tensor& input, int32_t axis, const Tensor& index) {
  if (input.dims()[axis] == 0 && index.elements() > 0) {
    refuse("{}: axis {} of input has length 0, so every index is out of range.", op, axis);
  }
}

// The slices of `input` along `dim` at the positions in `index`. In errors of `op` the index is called `name`.
Tensor slices(std::string_view op, const Tensor& input, int64_t dim, std::string_view name, const Tensor& index) {
  require_defined(op, "input", input);
  const Tensor indices = as_index(op, name, index);
  const Tensor source = input.rank() == 0 ? tenon::reshape(input, 1) : input;
  AxisAttributes attributes{};
  attributes.axis = axis_of(op, dim, source.rank());
  require_range(op, source, attributes.axis, indices);
  return apply(OpId::gather_slices, {&source, &indices}, &attributes);
}

Tensor elements(std::string_view op, const Tensor& input, int64_t dim, std::string_view name, const Tensor& index) {
  const Tensor indices = as_index(op, name, index);
  AxisAttributes attributes{};
  attributes.axis = axis_of(op, dim, input.rank());
  if (input.rank() == 0 && indices.rank() == 0) {
    return tenon::reshape(elements(op, tenon::reshape(input, 1), 0, name, tenon::reshape(indices, 1)), IntList());
  }
  if (input.rank() > 0) require_range(op, input, attributes.axis, indices);
  return apply(OpId::gather, {&input, &indices}, &attributes);
}

}  // namespace

Tensor gather_slices(const Tensor& input, int64_t dim, const Tensor& index) {
  return slices("gather_slices", input, dim, "index", index);
}

Tensor take(const Tensor& input, const Tensor& index) {
  require_defined("take", "input", input);
  return slices("take", tenon::reshape(input, -1), 0, "index", index);
}

Tensor gather(const Tensor& input, int64_t dim, const Tensor& index) {
  require_defined("gather", "input", input);
  return elements("gather", input, dim, "index", index);
}

Tensor index_select(const Tensor& input, int64_t dim, const Tensor& index) {
  require_defined("index_select", "index", index);
  if (index.rank() > 1) refuse("index_select: the index has rank {}; it must be a list.", index.rank());
  return slices("index_select", input, dim, "index", index.rank() == 0 ? tenon::reshape(index, 1) : index);
}

Tensor take_along_dim(const Tensor& input, const Tensor& indices, std::optional<int64_t> dim) {
  constexpr std::string_view op = "take_along_dim";
  require_defined(op, "input", input);
  require_defined(op, "indices", indices);
  if (!dim) return elements(op, tenon::reshape(input, -1), 0, "indices", tenon::reshape(indices, -1));
  if (input.rank() != indices.rank()) {
    refuse("{}: input of rank {} and indices of rank {} must have one rank.", op, input.rank(), indices.rank());
  }
  const int32_t axis = axis_of(op, *dim, input.rank());
  if (input.rank() == 0) return elements(op, input, axis, "indices", indices);
  Dims input_dims = input.dims();
  Dims index_dims = indices.dims();
  input_dims[axis] = index_dims[axis] = 1;
  const Dims common = value_or_throw(infer::broadcast(op, input_dims, index_dims));
  input_dims = index_dims = common;
  input_dims[axis] = input.dims()[axis];
  index_dims[axis] = indices.dims()[axis];
  return elements(op, tenon::expand(input, input_dims), axis, "indices", tenon::expand(indices, index_dims));
}

Tensor embedding(const Tensor& weight, const Tensor& indices) {
  require_defined("embedding", "weight", weight);
  return slices("embedding", weight, 0, "indices", indices);
}

}  // namespace tenon::functors
