// OpGradient: what the gradient of an op of a library sees of a call and of its gradients. The generator makes one from
// the column `gradient` of its row; a gradient written by hand is a function of one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/autograd/gradient_row.h"
#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon::autograd {

// Borrowed for the call of the function.
class TENON_API OpGradient {
 public:
  explicit OpGradient(const Backward& backward) : backward_(backward) {}

  // True if the gradient of tensor argument `i` is asked for.
  bool wants(size_t i) const;
  // The gradient of a result. That of an op's only result is defined.
  const Tensor& grad(size_t result = 0) const;
  // What the row says is saved. Throws invalid_argument, naming both ops, if it was written since.
  bool has(size_t i) const;
  Tensor input(size_t i) const;
  Tensor result(size_t i = 0) const;
  // Number `slot` among the float and Scalar parameters.
  double scalar(size_t slot) const;
  // The struct of the row's other parameters: attributes<Swish2Attributes>().
  template <class Attributes>
  const Attributes& attributes() const {
    return *static_cast<const Attributes*>(attribute_bytes());
  }
  // Of an argument that wants a gradient.
  Dims dims(size_t i) const;
  DType dtype(size_t i) const;
  // Gives the gradient of argument `i`: summed over the axes along which it was broadcast, then in its dtype and on its
  // device.
  void give(size_t i, Tensor gradient) const;

 private:
  const void* attribute_bytes() const;

  const Backward& backward_;
};

}  // namespace tenon::autograd
