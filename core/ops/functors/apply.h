// What functors are made of: checks of arguments, and apply, which hands a record to the calling thread's interpreter.
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

// Throws invalid_argument with the sentence that `text` and `parts` make.
template <class... Parts>
[[noreturn]] void refuse(fmt::format_string<const Parts&...> text, const Parts&... parts) {
  throw Error(Code::invalid_argument, fmt::format(text, parts...));
}

// Refuses an undefined tensor.
void require_defined(std::string_view op, std::string_view name, const Tensor& tensor);

// Refuses a tensor that is not of rank 0.
void require_rank_0(std::string_view op, std::string_view name, const Tensor& tensor);

// `list` as a shape of at most EP_MAX_RANK dims, which may still be negative.
Dims dims_of(std::string_view op, IntList list);

// `axis` in [0, rank).
int32_t axis_of(std::string_view op, int64_t axis, int32_t rank);

// Refuses an `out` that cannot hold a result of `dims` and `dtype`: another shape, or bool for numbers, integers for
// floats.
void require_room(std::string_view op, const Tensor& out, const SymDims& dims, DType dtype);

// Copies `result` into `input`: what an op that gives a new tensor does in place. Errors: those of require_room.
void overwrite(std::string_view op, Tensor& input, const Tensor& result);

// Refuses to give a result whose size depends on data to a program that is recorded.
[[noreturn]] void refuse_size(std::string_view op);

// The number that a small tensor holds, on which the size of a result of `op` depends.
int64_t size_from(std::string_view op, const Tensor& count);

// `number` as an element of `dtype` has it: an integer within its range, toward zero, or whether it is not 0.
Scalar in_dtype(const Scalar& number, DType dtype);

// `tensor` if defined, else null, as OpCall wants optional inputs.
inline const Tensor* or_null(const Tensor& tensor) { return tensor.defined() ? &tensor : nullptr; }

// Applies the op `id` to `inputs` (null for an absent one). Returns the one output, which is new; or nothing, if it was
// written into `out`. So do all functors that take an `out`: their callers have it.
Tensor apply(OpId id, std::initializer_list<const Tensor*> inputs, const void* attributes, Scalars scalars = {},
             Tensor* out = nullptr);
// The same for the most common form of record, at half the cost.
Tensor apply(OpId id, const Tensor& input, const void* attributes);
// The same with several outputs, which are all new.
void apply(OpId id, std::span<const Tensor* const> inputs, const void* attributes, std::span<Tensor> outputs,
           Scalars scalars = {});

// The product of two tensors of one dtype, whose shapes the record's rule checks. `addend`, if it is defined,
// broadcasts to the result; it is added before the result is rounded if both factors are matrices.
Tensor product(const Tensor& a, const Tensor& b, const Tensor& addend = {});

// `result`, no element of which depends on one of `input`, with the history of `input` if this wants a gradient, which
// is then 0. For results that are made without an op of their own because `input` has no elements.
Tensor with_history_of(const Tensor& input, Tensor result);

// `x` itself if it wants no gradient, else its elements without the history: what is done to them has no gradient.
Tensor without_history(const Tensor& x);

// The greater of `x` and `least`. Gradients see `x` on both sides, as in PyTorch where it clamps without a gradient.
Tensor at_least(const Tensor& x, double least);

// The dtype two tensors are computed in: promoted, except that a tensor of rank 0 does not widen one of higher rank
// and at least its class (PyTorch's rule).
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
