// Checks of a record by rules. Functors make most of these checks too, but a graph may hold records that no functor
// made.
#pragma once

#include <string_view>
#include <type_traits>

#include "core/ops/sym_call.h"
#include "ep_api/ep_api.h"
#include "primitives/infer/axis.h"
#include "primitives/infer/size.h"
#include "primitives/infer/wrong.h"

namespace tenon::ops {

template <class Call>
Status require_axis(const Call& call, int32_t axis, int32_t rank) {
  if (axis >= 0 && axis < rank) return {};
  return infer::wrong(call.op->name, "axis {} is out of range for rank {}.", axis, rank);
}

// Ok if `value`, called `name`, is between `least` and `most`.
template <class Call>
Status require_choice(const Call& call, std::string_view name, int32_t value, int32_t least, int32_t most) {
  if (value >= least && value <= most) return {};
  return infer::wrong(call.op->name, "{} is {}; it must be {} to {}.", name, value, least, most);
}

template <class Call>
Status require_flag(const Call& call, std::string_view name, int32_t value) {
  return require_choice(call, name, value, 0, 1);
}

template <class Call>
Status require_flags(const Call& call, int32_t flags, int32_t known) {
  if ((flags & ~known) == 0) return {};
  return infer::wrong(call.op->name, "flags are {}, but only {} are allowed.", flags, known);
}

// Ok if input `index`, called `name`, has the dtype `wanted`.
template <class Call>
Status require_dtype(const Call& call, size_t index, std::string_view name, DType wanted) {
  const DType dtype = call.inputs[index]->dtype();
  if (dtype == wanted) return {};
  return infer::wrong(call.op->name, "{} is {} but must be {}.", name, dtype_name(dtype), dtype_name(wanted));
}

template <class Call>
Status require_floating(const Call& call, size_t index, std::string_view name) {
  const DType dtype = call.inputs[index]->dtype();
  if (is_floating(dtype)) return {};
  return infer::wrong(call.op->name, "{} is {}; it must be floating-point.", name, dtype_name(dtype));
}

template <class Call>
Status require_index(const Call& call, size_t index, std::string_view name) {
  const DType dtype = call.inputs[index]->dtype();
  if (dtype == DType::i32 || dtype == DType::i64) return {};
  return infer::wrong(call.op->name, "{} is {}; it must be i32 or i64.", name, dtype_name(dtype));
}

template <class Call>
Status require_shape(const Call& call, size_t index, std::string_view name,
                     const BasicDims<typename Call::Size>& wanted) {
  const auto& dims = call.inputs[index]->dims();
  bool same = dims.rank() == wanted.rank();
  for (int32_t axis = 0; same && axis < dims.rank(); ++axis) same = expect(dims[axis] == wanted[axis]);
  if (same) return {};
  return infer::wrong(call.op->name, "{} has shape {} but must have shape {}.", name, dims, wanted);
}

// Ok if a tensor of `dims` can exist: with expressions, the run checks that.
template <class Call>
Status checked_numbers(const Call& call, const BasicDims<typename Call::Size>& dims) {
  if constexpr (std::is_same_v<Call, OpCall>) return infer::checked(call.op->name, dims).status();
  return {};
}

// Checks a gather: after `batch` axes that input 0 shares, input 1 holds coordinates of input 0's next `count` axes.
template <class Call>
Status require_coordinates(const Call& call, int32_t batch, int32_t count) {
  const auto& input = call.inputs[0]->dims();
  const auto& indices = call.inputs[1]->dims();
  const int64_t rank = int64_t{indices.rank()} - 1 + input.rank() - batch - count;
  if (batch < 0 || batch >= indices.rank() || count < 1 || int64_t{batch} + count > input.rank() ||
      !expect(indices[indices.rank() - 1] == count)) {
    return infer::wrong(call.op->name,
                        "{} coordinates after {} batch axes do not fit input of shape {} and indices of shape {}.",
                        count, batch, input, indices);
  }
  if (rank < 1 || rank > EP_MAX_RANK) {
    return infer::wrong(call.op->name, "the elements at indices of shape {} would have rank {}; it must be 1 to {}.",
                        indices, rank, EP_MAX_RANK);
  }
  for (int32_t axis = 0; axis < batch; ++axis) {
    if (expect(input[axis] == indices[axis])) continue;
    return infer::wrong(call.op->name, "axis {} of input and of indices is a batch axis, but they are {} and {} long.",
                        axis, input[axis], indices[axis]);
  }
  return {};
}

}  // namespace tenon::ops
