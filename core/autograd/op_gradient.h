// OpGradient: the view of a call and its gradients that the gradient of a library's op gets. The generator makes the
// function from the column `gradient` of the op's row; a gradient written by hand is a function of one OpGradient.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/autograd/gradient_row.h"
#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon::autograd {

// Valid only during the call of the gradient function.
class TENON_API OpGradient {
 public:
  explicit OpGradient(const Backward& backward) : backward_(backward) {}

  // True if the gradient of tensor argument `i` is needed.
  bool wants(size_t i) const;
  // The gradient of a result. It is always defined if the op has only one result.
  const Tensor& grad(size_t result = 0) const;
  // The tensors that the row saves. input() and result() throw invalid_argument, naming both ops, if the tensor was
  // written since.
  bool has(size_t i) const;
  Tensor input(size_t i) const;
  Tensor result(size_t i = 0) const;
  // The value of float or Scalar parameter number `slot`.
  double scalar(size_t slot) const;
  // The struct of the row's other parameters: attributes<Swish2Attributes>().
  template <class Attributes>
  const Attributes& attributes() const {
    return *static_cast<const Attributes*>(attribute_bytes());
  }
  // The dims of an argument that wants a gradient.
  Dims dims(size_t i) const;
  DType dtype(size_t i) const;
  // Sets the gradient of argument `i`: sums it over the axes along which the argument was broadcast, then converts it
  // to the argument's dtype and device.
  void give(size_t i, Tensor gradient) const;

 private:
  const void* attribute_bytes() const;

  const Backward& backward_;
};

}  // namespace tenon::autograd
