// The path of an element-wise op from the typed API into the interpreter. Arguments that need no conversion are passed
// on directly; casts, promotion and mismatches use the slow functions. `dtypes` has bit 1 << dtype for each dtype of
// the scalar row.
#pragma once

#include <cstdint>
#include <span>

#include "core/ops/op_call.h"

namespace tenon::elementwise {

using Scalars = std::span<const Scalar>;

// Takes any dtypes: chooses the dtype to compute in, casts, and writes the result into `out`, or returns it if `out` is
// null.
Tensor unary_slow(const OpInfo& op, uint32_t dtypes, Tensor* out, const Tensor& x, Scalars scalars);
Tensor binary_slow(const OpInfo& op, uint32_t dtypes, Tensor* out, const Tensor& input, const Tensor& other);
Tensor binary_slow(const OpInfo& op, uint32_t dtypes, Tensor* out, const Tensor& input, const Scalar& other);
Tensor binary_slow(const OpInfo& op, uint32_t dtypes, Tensor* out, const Scalar& input, const Tensor& other);

// True if the result on `inputs` (null for a number) has the shape of `out`, and all sizes are numbers.
bool has_room(const Tensor& out, std::span<const Tensor* const> inputs);

// Throws the row's error for bool arguments if the row refuses them. `both`: both arguments are bool, not just one.
void refuse_bool(const OpInfo& op, bool both);

inline bool among(uint32_t dtypes, const Tensor& x) { return (dtypes >> static_cast<uint32_t>(x.dtype()) & 1) != 0; }

// True if two tensors have the same shape. For open tensors, at the hints: a recorder notes the guards that the op
// needs.
inline bool same_shape(const Tensor& a, const Tensor& b) { return a.impl()->dims == b.impl()->dims; }

// True if `out` has the dtype of the result of `op` on tensors of the dtype of `x`.
inline bool holds(const OpInfo& op, const Tensor& out, const Tensor& x) {
  return out.defined() && out.dtype() == (op.bool_result ? DType::boolean : x.dtype());
}
// Like holds(), and `out` also has the dims of `x`.
inline bool fits(const OpInfo& op, const Tensor& out, const Tensor& x) {
  return holds(op, out, x) && same_shape(out, x);
}

// True if an op on `x` and the number `s` is computed in the dtype of `x`.
inline bool absorbs(const Tensor& x, const Scalar& s) {
  const auto bit = static_cast<uint32_t>(x.dtype());
  constexpr uint32_t floats = 1u << EP_DTYPE_f16 | 1u << EP_DTYPE_bf16 | 1u << EP_DTYPE_f32 | 1u << EP_DTYPE_f64;
  if ((floats >> bit & 1) != 0) return true;
  return s.dtype() == x.dtype() || (s.dtype() == DType::boolean && x.dtype() != DType::boolean) ||
         (s.dtype() == DType::i64 && x.dtype() != DType::boolean && x.dtype() <= DType::i64);
}

inline Tensor apply(const OpInfo& op, std::span<const Tensor* const> inputs, Scalars scalars) {
  Tensor result;
  OpCall call;
  call.op = &op;
  call.inputs = inputs;
  call.scalars = scalars;
  call.outputs = {&result, 1};
  submit(call);
  return result;
}

inline void apply_into(const OpInfo& op, Tensor& out, std::span<const Tensor* const> inputs, Scalars scalars) {
  OpCall call;
  call.op = &op;
  call.inputs = inputs;
  call.scalars = scalars;
  call.outputs = {&out, 1};
  submit(call);
}

inline Tensor unary(const OpInfo& op, uint32_t dtypes, const Tensor& x, Scalars scalars = {}) {
  if (!x.defined() || !among(dtypes, x)) [[unlikely]]
    return unary_slow(op, dtypes, nullptr, x, scalars);
  const Tensor* inputs[] = {&x};
  return apply(op, inputs, scalars);
}

inline void unary_into(const OpInfo& op, uint32_t dtypes, Tensor& out, const Tensor& x, Scalars scalars = {}) {
  if (!x.defined() || !among(dtypes, x) || !fits(op, out, x)) [[unlikely]] {
    unary_slow(op, dtypes, &out, x, scalars);
    return;
  }
  const Tensor* inputs[] = {&x};
  apply_into(op, out, inputs, scalars);
}

inline bool ready(uint32_t dtypes, const Tensor& input, const Tensor& other) {
  return input.defined() && other.defined() && input.dtype() == other.dtype() && among(dtypes, input);
}
inline bool ready(uint32_t dtypes, const Tensor& x, const Scalar& s) {
  return x.defined() && among(dtypes, x) && absorbs(x, s);
}

inline Tensor binary(const OpInfo& op, uint32_t dtypes, const Tensor& input, const Tensor& other) {
  if (!ready(dtypes, input, other)) [[unlikely]]
    return binary_slow(op, dtypes, nullptr, input, other);
  const Tensor* inputs[] = {&input, &other};
  return apply(op, inputs, {});
}

inline Tensor binary(const OpInfo& op, uint32_t dtypes, const Tensor& input, const Scalar& other) {
  if (!ready(dtypes, input, other)) [[unlikely]]
    return binary_slow(op, dtypes, nullptr, input, other);
  const Tensor* inputs[] = {&input, nullptr};
  const Scalar scalars[] = {Scalar(), other};
  return apply(op, inputs, scalars);
}

inline Tensor binary(const OpInfo& op, uint32_t dtypes, const Scalar& input, const Tensor& other) {
  if (!ready(dtypes, other, input)) [[unlikely]]
    return binary_slow(op, dtypes, nullptr, input, other);
  const Tensor* inputs[] = {nullptr, &other};
  const Scalar scalars[] = {input};
  return apply(op, inputs, scalars);
}

inline void binary_into(const OpInfo& op, uint32_t dtypes, Tensor& out, const Tensor& input, const Tensor& other) {
  const Tensor* inputs[] = {&input, &other};
  if (!ready(dtypes, input, other) || !holds(op, out, input) ||
      !((same_shape(out, input) && same_shape(other, input)) || has_room(out, inputs))) [[unlikely]] {
    binary_slow(op, dtypes, &out, input, other);
    return;
  }
  apply_into(op, out, inputs, {});
}

inline void binary_into(const OpInfo& op, uint32_t dtypes, Tensor& out, const Tensor& input, const Scalar& other) {
  if (!ready(dtypes, input, other) || !fits(op, out, input)) [[unlikely]] {
    binary_slow(op, dtypes, &out, input, other);
    return;
  }
  const Tensor* inputs[] = {&input, nullptr};
  const Scalar scalars[] = {Scalar(), other};
  apply_into(op, out, inputs, scalars);
}

inline void binary_into(const OpInfo& op, uint32_t dtypes, Tensor& out, const Scalar& input, const Tensor& other) {
  if (!ready(dtypes, other, input) || !fits(op, out, other)) [[unlikely]] {
    binary_slow(op, dtypes, &out, input, other);
    return;
  }
  const Tensor* inputs[] = {nullptr, &other};
  const Scalar scalars[] = {input};
  apply_into(op, out, inputs, scalars);
}

}  // namespace tenon::elementwise
