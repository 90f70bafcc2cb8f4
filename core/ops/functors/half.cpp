#include "core/ops/functors/half.h"

#include "core/ops/functors/apply.h"

namespace tenon::functors {

Halves::Halves(std::span<const Tensor* const> tensors) {
  for (const Tensor* x : tensors) any_ = any_ || (x->defined() && is_half(x->dtype()));
  if (!any_) return;
  DType of_numbers = DType::none;  // dtype of tensors of rank 0, which count only if there are no others
  for (const Tensor* x : tensors) {
    if (!x->defined() || !is_floating(x->dtype())) continue;
    DType& dtype = x->rank() == 0 ? of_numbers : dtype_;
    dtype = dtype == DType::none ? x->dtype() : promote(dtype, x->dtype());
  }
  if (dtype_ == DType::none) dtype_ = of_numbers;
}

Tensor Halves::widened(const Tensor& x) { return x.defined() && is_half(x.dtype()) ? tenon::cast(x, DType::f32) : x; }

TensorList Halves::widened(TensorList tensors) {
  for (Tensor& tensor : tensors) tensor = widened(tensor);
  return tensors;
}

Tensor Halves::rounded(const Tensor& result) const {
  return is_half(dtype_) && is_floating(result.dtype()) ? tenon::cast(result, dtype_) : result;
}

}  // namespace tenon::functors
