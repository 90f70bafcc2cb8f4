// Helpers of functors: checks of arguments, and apply, which passes a record to the calling thread's interpreter.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "core/ops/attributes.h"
#include "core/ops/functors.h"
#include "core/ops/functors/elementwise.h"
#include "core/ops/op_call.h"
#include "core/ops/op_rows.h"
#include "core/ops/ops.h"
#include "core/ops/sizes.h"
#include "core/tensor/int_list.h"
#include "primitives/infer/axis.h"
#include "primitives/infer/broadcast.h"
#include "primitives/infer/types.h"
#include "primitives/text/format.h"

namespace tenon::functors {

using elementwise::Scalars;

// Throws invalid_argument as an error of `op`, with the reason formatted from `text` and `parts`.
template <class... Parts>
[[noreturn]] void refuse(std::string_view op, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  throw Error(Subject{op}, Code::invalid_argument, fmt::format(text, parts...));
}

// Throws for an undefined tensor.
void require_defined(std::string_view op, std::string_view name, const Tensor& tensor);

// `input` if it is floating-point, else `input` as f32.
Tensor floating(const Tensor& input);
// Like the function above, for the argument `name` of `op`. Throws for an undefined tensor.
Tensor floating(std::string_view op, std::string_view name, const Tensor& input);
inline Tensor floating(std::string_view op, const Tensor& input) { return floating(op, "input", input); }
// The distance from 1 to the next number, in f64 for f64 and in f32 for the floating dtypes that are computed in f32.
inline double epsilon(DType dtype) { return dtype == DType::f64 ? 0x1p-52 : 0x1p-23; }

// Throws for a tensor that is not of rank 0.
void require_rank_0(std::string_view op, std::string_view name, const Tensor& tensor);

// `list` as a shape of at most EP_MAX_RANK dims, which may still be negative.
Dims dims_of(std::string_view op, IntList list);

// `axis` as a number in [0, rank); negative axes count from the end.
int32_t axis_of(std::string_view op, int64_t axis, int32_t rank);

// Throws for an `out` that cannot hold a result of `dims` and `dtype`: another shape, bool for numbers, or integers for
// floats.
void require_room(std::string_view op, const Tensor& out, const SymDims& dims, DType dtype);

// Copies `result` into `input`: the in-place form of an op that returns a new tensor. Errors: those of require_room.
void overwrite(std::string_view op, Tensor& input, const Tensor& result);

// Throws because a program is being recorded and the size of the result depends on data.
[[noreturn]] void refuse_size(std::string_view op);

// The number in a small tensor that determines the size of a result of `op`.
int64_t size_from(std::string_view op, const Tensor& count);

// `number` converted to `dtype`: truncated and clamped to the range of an integer dtype; for bool, true if it is not 0.
Scalar in_dtype(const Scalar& number, DType dtype);

// `tensor` if defined, else null: the form of optional inputs in OpCall.
inline const Tensor* or_null(const Tensor& tensor) { return tensor.defined() ? &tensor : nullptr; }

// Applies the op `id` to `inputs` (null for an absent one). Returns the one output, which is new; or an undefined
// tensor, if the output was written into `out`. So do all functors that take an `out`, since their callers have it.
Tensor apply(OpId id, std::initializer_list<const Tensor*> inputs, const void* attributes, Scalars scalars = {},
             Tensor* out = nullptr);
// Like the function above for the most common form of record, at half the cost.
Tensor apply(OpId id, const Tensor& input, const void* attributes);
// Like the function above with several outputs, which are all new.
void apply(OpId id, std::span<const Tensor* const> inputs, const void* attributes, std::span<Tensor> outputs,
           Scalars scalars = {});

// The product of two tensors of one dtype; the record's rule checks their shapes. `addend`, if defined, broadcasts to
// the result. If both factors are matrices, it is added before the result is rounded.
Tensor product(const Tensor& a, const Tensor& b, const Tensor& addend = {});

// `result` with the history of `input`, with a gradient of 0, if `input` wants one. For results that do not depend on
// any element of `input` and are made without an op, because `input` has no elements.
Tensor with_history_of(const Tensor& input, Tensor result);

// True if ops of this thread record how `x` is used, because it wants a gradient. core/autograd defines it.
bool wants_gradient(const Tensor& x);

// `x` itself if it wants no gradient, else a tensor with the same elements and no history.
Tensor without_history(const Tensor& x);

// The greater of `x` and `least`. The gradient passes to `x` on both sides of `least`, like in places where PyTorch
// clamps without a gradient.
Tensor at_least(const Tensor& x, double least);

// The dtype in which an op on two tensors computes: the promoted dtype, except that a tensor of rank 0 does not widen a
// tensor of higher rank and of at least its class (PyTorch's rule).
DType promote_tensors(const Tensor& a, const Tensor& b);
DType promote_with(DType dtype, const Scalar& number);

template <class A, class B>
Tensor binary_to(OpId id, Tensor* out, const A& input, const B& other) {
  if (out == nullptr) return elementwise::binary(op_row(id), dtypes_of(id), input, other);
  elementwise::binary_into(op_row(id), dtypes_of(id), *out, input, other);
  return {};
}

inline Tensor unary_to(OpId id, Tensor* out, const Tensor& x) {
  if (out == nullptr) return elementwise::unary(op_row(id), dtypes_of(id), x);
  elementwise::unary_into(op_row(id), dtypes_of(id), *out, x);
  return {};
}

}  // namespace tenon::functors
