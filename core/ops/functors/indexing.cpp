// Gathering slices and elements by index.
#include "core/ops/functors/record.h"

namespace tenon::functors {
namespace {

// `index` as i32 or i64.
Tensor as_index(std::string_view op, const Tensor& index) {
  require_defined(op, "index", index);
  if (!is_integer(index.dtype())) refuse(op, ": the index must be integers, not ", dtype_name(index.dtype()), ".");
  return index.dtype() == DType::i32 ? index : tenon::cast(index, DType::i64);
}

void require_range(std::string_view op, const Tensor& input, int32_t axis, const Tensor& index) {
  if (input.dims()[axis] == 0 && index.elements() > 0) {
    refuse(op, ": axis ", axis, " of input has length 0, so every index is out of range.");
  }
}

}  // namespace

Tensor take(const Tensor& input, const Tensor& index, int64_t dim) {
  require_defined("take", "input", input);
  const Tensor indices = as_index("take", index);
  const Tensor source = input.rank() == 0 ? tenon::reshape(input, 1) : input;
  AxisAttributes attributes{};
  attributes.axis = axis_of("take", dim, source.rank());
  require_range("take", source, attributes.axis, indices);
  return record(OpId::take, {&source, &indices}, &attributes);
}

Tensor gather(const Tensor& input, int64_t dim, const Tensor& index) {
  require_defined("gather", "input", input);
  const Tensor indices = as_index("gather", index);
  AxisAttributes attributes{};
  attributes.axis = axis_of("gather", dim, input.rank());
  if (input.rank() == 0 && indices.rank() == 0) {
    return tenon::reshape(tenon::gather(tenon::reshape(input, 1), 0, tenon::reshape(indices, 1)), IntList());
  }
  if (input.rank() > 0) require_range("gather", input, attributes.axis, indices);
  return record(OpId::gather, {&input, &indices}, &attributes);
}

Tensor index_select(const Tensor& input, int64_t dim, const Tensor& index) {
  require_defined("index_select", "index", index);
  if (index.rank() > 1) refuse("index_select: the index has rank ", index.rank(), "; it must be a list.");
  return tenon::take(input, index.rank() == 0 ? tenon::reshape(index, 1) : index, dim);
}

Tensor take_along_dim(const Tensor& input, const Tensor& indices, int64_t dim) {
  constexpr std::string_view op = "take_along_dim";
  require_defined(op, "input", input);
  require_defined(op, "indices", indices);
  if (input.rank() != indices.rank()) {
    refuse(op, ": input of rank ", input.rank(), " and indices of rank ", indices.rank(), " must have one rank.");
  }
  const int32_t axis = axis_of(op, dim, input.rank());
  if (input.rank() == 0) return tenon::gather(input, dim, indices);
  Dims input_dims = input.dims();
  Dims index_dims = indices.dims();
  input_dims[axis] = index_dims[axis] = 1;
  const Dims common = value_or_throw(infer::broadcast(op, input_dims, index_dims));
  input_dims = index_dims = common;
  input_dims[axis] = input.dims()[axis];
  index_dims[axis] = indices.dims()[axis];
  return tenon::gather(tenon::expand(input, input_dims), axis, tenon::expand(indices, index_dims));
}

Tensor embedding(const Tensor& weight, const Tensor& indices) { return tenon::take(weight, indices, 0); }

}  // namespace tenon::functors
