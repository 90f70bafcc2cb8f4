// Halves: composites of f16 and bf16 tensors compute in f32, so that no intermediate number overflows or is rounded;
// only the results are rounded. The generated code does so for rows of ops.yaml with `wide: true`; other functors do it
// by hand.
#pragma once

#include <initializer_list>
#include <span>
#include <tuple>

#include "core/tensor/tensor.h"

namespace tenon::functors {

inline bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

class Halves {
 public:
  // The tensors of a call; undefined ones are ignored.
  explicit Halves(std::span<const Tensor* const> tensors);
  Halves(std::initializer_list<const Tensor*> tensors) : Halves(std::span(tensors.begin(), tensors.size())) {}

  // True if one of the tensors is f16 or bf16.
  bool any() const { return any_; }
  // `x` in f32 if it is f16 or bf16, else `x`.
  static Tensor widened(const Tensor& x);
  static TensorList widened(TensorList tensors);
  // `result` in the dtype to which the floating tensors of the call promote, if that is f16 or bf16 and `result` is
  // floating; else `result`.
  Tensor rounded(const Tensor& result) const;
  template <class... Tensors>
  std::tuple<Tensors...> rounded(const std::tuple<Tensors...>& results) const {
    return std::apply([this](const auto&... each) { return std::tuple<Tensors...>(this->rounded(each)...); }, results);
  }

 private:
  bool any_ = false;
  DType dtype_ = DType::none;
};

}  // namespace tenon::functors
