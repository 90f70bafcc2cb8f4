// where, clamp, fma: element-wise ops of three arguments, each a tensor or a number.
#include <algorithm>

#include "core/ops/functors/apply.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

// A tensor or a number.
struct Operand {
  Operand(const Tensor& value) : tensor(&value) {}
  Operand(const Scalar& value) : number(value) {}
  const Tensor* tensor = nullptr;
  Scalar number;
};

DType joint_dtype(const Operand& a, const Operand& b) {
  if (a.tensor != nullptr && b.tensor != nullptr) return promote_tensors(*a.tensor, *b.tensor);
  if (a.tensor != nullptr) return promote_with(a.tensor->dtype(), b.number);
  if (b.tensor != nullptr) return promote_with(b.tensor->dtype(), a.number);
  const DType none = DType::boolean;
  return promote_with(promote_with(none, a.number), b.number);
}

// The tensor of `operand` in `dtype`, or a copy stored in `copy`; null if it is a number.
const Tensor* as_dtype(const Operand& operand, DType dtype, Tensor* copy) {
  if (operand.tensor == nullptr || operand.tensor->dtype() == dtype) return operand.tensor;
  *copy = tenon::cast(*operand.tensor, dtype);
  return copy;
}

void check_out(std::string_view op, const Tensor& out, DType dtype, std::span<const Tensor* const> inputs) {
  require_defined(op, "out", out);
  if (out.dtype() == dtype && elementwise::has_room(out, inputs)) return;
  Dims dims;
  for (const Tensor* input : inputs) {
    if (input != nullptr) dims = value_or_throw(infer::broadcast(op, dims, input->dims()));
  }
  if (!(out.dims() == dims) || out.dtype() != dtype) {
    refuse(op, "the result is {} {}, but it is to be written into {} {}.", dtype_name(dtype), dims,
           dtype_name(out.dtype()), out.dims());
  }
}

Tensor ternary(OpId id, Tensor* out, const Operand& a, const Operand& b, const Operand& c, DType dtype) {
  const OpInfo& op = op_row(id);
  Tensor copies[3];
  const Tensor* const inputs[] = {op.cond_first ? a.tensor : as_dtype(a, dtype, &copies[0]),
                                  as_dtype(b, dtype, &copies[1]), as_dtype(c, dtype, &copies[2])};
  if (out != nullptr) check_out(op.name, *out, dtype, inputs);
  const Scalar scalars[] = {a.number, b.number, c.number};
  return apply(id, {inputs[0], inputs[1], inputs[2]}, nullptr, scalars, out);
}

Tensor choose(Tensor* out, const Tensor& condition, const Operand& input, const Operand& other) {
  require_defined("where", "condition", condition);
  if (condition.dtype() != DType::boolean) {
    refuse("where", "the condition must be bool, not {}.", dtype_name(condition.dtype()));
  }
  const DType dtype = joint_dtype(input, other);
  if (input.tensor != nullptr || other.tensor != nullptr)
    return ternary(OpId::where, out, condition, input, other, dtype);
  const Tensor value = tenon::full(IntList(), input.number, dtype, condition.device());
  return ternary(OpId::where, out, condition, value, other, dtype);
}

DType numeric(std::string_view op, DType dtype) {
  return value_or_throw(infer::ternary(op, EP_TERNARY_clamp, dtype, dtype, dtype)).compute;
}

// The nearest number to `bound` in an integer dtype of at most 32 bits. Other bounds stay as they are.
Scalar within(const Scalar& bound, DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  const bool is_signed = info.type_class == DTypeClass::INT;
  if ((!is_signed && info.type_class != DTypeClass::UINT) || info.bits > 32 || bound.dtype() != DType::i64)
    return bound;
  const int64_t most = (int64_t{1} << (info.bits - (is_signed ? 1 : 0))) - 1;
  return std::clamp(bound.to_int(), is_signed ? -most - 1 : 0, most);
}

}  // namespace

Tensor where(Tensor* out, const Tensor& condition, const Tensor& input, const Tensor& other) {
  require_defined("where", "input", input);
  require_defined("where", "other", other);
  return choose(out, condition, input, other);
}
Tensor where(Tensor* out, const Tensor& condition, const Tensor& input, Scalar other) {
  require_defined("where", "input", input);
  return choose(out, condition, input, other);
}
Tensor where(Tensor* out, const Tensor& condition, Scalar input, const Tensor& other) {
  require_defined("where", "other", other);
  return choose(out, condition, input, other);
}
Tensor where(Tensor* out, const Tensor& condition, Scalar input, Scalar other) {
  return choose(out, condition, input, other);
}

Tensor masked_fill(const Tensor& input, const Tensor& mask, const Tensor& value) {
  require_defined("masked_fill", "input", input);
  require_rank_0("masked_fill", "value", value);
  return tenon::where(mask, value, input);
}

Tensor masked_fill(const Tensor& input, const Tensor& mask, Scalar value) {
  require_defined("masked_fill", "input", input);
  return tenon::where(mask, in_dtype(value, input.dtype()), input);
}

Tensor clamp(Tensor* out, const Tensor& input, std::optional<Scalar> min, std::optional<Scalar> max) {
  require_defined("clamp", "input", input);
  if (!min && !max) refuse("clamp", "both min and max are absent.");
  if (min) min = within(*min, input.dtype());
  if (max) max = within(*max, input.dtype());
  if (!max) return binary_to(OpId::maximum, out, input, *min);
  if (!min) return binary_to(OpId::minimum, out, input, *max);
  const bool absorbed = elementwise::absorbs(input, *min) && elementwise::absorbs(input, *max);
  const DType dtype =
      numeric("clamp", absorbed ? input.dtype() : promote_with(promote_with(input.dtype(), *min), *max));
  return ternary(OpId::clamp, out, input, *min, *max, dtype);
}

Tensor clamp(Tensor* out, const Tensor& input, const Tensor& min, const Tensor& max) {
  require_defined("clamp", "input", input);
  if (!min.defined() && !max.defined()) refuse("clamp", "both min and max are absent.");
  if (!max.defined()) return binary_to(OpId::maximum, out, input, min);
  if (!min.defined()) return binary_to(OpId::minimum, out, input, max);
  const DType dtype = numeric("clamp", promote(promote_tensors(input, min), promote_tensors(input, max)));
  return ternary(OpId::clamp, out, input, min, max, dtype);
}

namespace {

Tensor clamp_mixed(Tensor* out, const Tensor& input, const Operand& min, const Operand& max) {
  require_defined("clamp", "input", input);
  const Tensor& bound = min.tensor != nullptr ? *min.tensor : *max.tensor;
  require_defined("clamp", min.tensor != nullptr ? "min" : "max", bound);
  const Scalar& number = min.tensor != nullptr ? max.number : min.number;
  return ternary(OpId::clamp, out, input, min, max,
                 numeric("clamp", promote_with(promote_tensors(input, bound), number)));
}

}  // namespace

Tensor clamp(Tensor* out, const Tensor& input, Scalar min, const Tensor& max) {
  return clamp_mixed(out, input, min, max);
}
Tensor clamp(Tensor* out, const Tensor& input, const Tensor& min, Scalar max) {
  return clamp_mixed(out, input, min, max);
}

Tensor fma(Tensor* out, const Tensor& input, const Tensor& other, const Tensor& addend) {
  require_defined("fma", "input", input);
  require_defined("fma", "other", other);
  require_defined("fma", "addend", addend);
  const DType dtype = numeric("fma", promote(promote_tensors(input, other), promote_tensors(input, addend)));
  return ternary(OpId::fma, out, input, other, addend, dtype);
}

namespace {

Tensor interpolated(Tensor* out, const Tensor& input, const Tensor& end, const Operand& weight) {
  require_defined("lerp", "input", input);
  require_defined("lerp", "end", end);
  DType dtype = promote_tensors(input, end);
  dtype = weight.tensor == nullptr ? promote_with(dtype, weight.number) : promote(dtype, weight.tensor->dtype());
  if (!is_floating(dtype)) dtype = DType::f32;
  return ternary(OpId::lerp, out, input, end, weight, dtype);
}

}  // namespace

Tensor lerp(Tensor* out, const Tensor& input, const Tensor& end, const Tensor& weight) {
  require_defined("lerp", "weight", weight);
  return interpolated(out, input, end, weight);
}
Tensor lerp(Tensor* out, const Tensor& input, const Tensor& end, Scalar weight) {
  return interpolated(out, input, end, weight);
}

}  // namespace tenon::functors
