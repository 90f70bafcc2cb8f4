// Backward: what the gradient function of a row sees of a call and of its gradients. Internal.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/op_node.h"
#include "core/ops/size_list.h"
#include "core/ops/sizes.h"
#include "core/tensor/tensor.h"

namespace tenon::autograd {

// Borrowed for the call of the function.
class Backward {
 public:
  Backward(const OpNode& node, std::span<const Tensor> of_results, uint64_t wanted, std::span<Tensor> of_inputs)
      : node_(node), of_results_(of_results), of_inputs_(of_inputs), wanted_(wanted) {}

  const OpInfo& op() const { return node_.op(); }
  size_t input_count() const { return of_inputs_.size(); }
  size_t result_count() const { return of_results_.size(); }
  // True if the gradient of input `i` is asked for.
  bool wants(size_t i) const { return (wanted_ >> i & 1) != 0; }
  // The gradient of a result. That of an op's only result is defined.
  const Tensor& grad(size_t result = 0) const { return of_results_[result]; }
  std::span<const Tensor> grads() const { return of_results_; }

  // True if input `i` was given and is saved.
  bool has(size_t i) const { return node_.holds_input(i); }
  // What was saved. Throws invalid_argument, naming both ops, if it was written since.
  Tensor input(size_t i) const { return node_.saved_input(i); }
  Tensor result(size_t i = 0) const { return node_.saved_result(i); }
  // Calls function(x) with x the saved input `i` of an element-wise op, a tensor or a number.
  template <class Function>
  void with(size_t i, const Function& function) const {
    bind_patches();
    node_.holds_input(i) ? function(input(i)) : function(node_.scalar(i));
  }

  // Attributes and scalars that are expressions of a recording are bound: `general_attributes` and `size_of` read them
  // without.
  template <class Attributes>
  const Attributes& attributes() const {
    bind_patches();
    return general_attributes<Attributes>();
  }
  double scalar(size_t slot) const {
    bind_patches();
    return node_.scalar(slot).to_double();
  }
  template <class Attributes>
  const Attributes& general_attributes() const {
    return *static_cast<const Attributes*>(node_.attributes());
  }
  // `field`, an i64 of the attributes, as an expression where it is one.
  SymDim size_of(const int64_t& field) const;

  // Of an input that wants a gradient. Open sizes of a recording are bound: `general` reads them without.
  const Dims& dims(size_t i) const;
  bool is_open(size_t i) const {
    return node_.shape(i) != nullptr ? node_.shape(i)->open != nullptr : tenon::is_open(first_grad());
  }
  // As expressions where they are open.
  SymDims sizes(size_t i) const;
  // What function(dims), with dims the shape of input `i` as an argument of ops, gives.
  template <class Function>
  Tensor general(size_t i, const Function& function) const {
    return is_open(i) ? function(IntList(SizeList(sizes(i)))) : function(IntList(dims(i)));
  }
  DType dtype(size_t i) const { return node_.shape(i) != nullptr ? node_.shape(i)->dtype : of_results_[0].dtype(); }

  // Gives the gradient of input `i`: summed over the axes along which forward has broadcast the input, then in the
  // dtype and on the device of the input.
  void give(size_t i, Tensor gradient) const;

 private:
  void bind_patches() const;
  // Of the results' gradients the first that is there.
  const Tensor& first_grad() const;

  const OpNode& node_;
  std::span<const Tensor> of_results_;
  std::span<Tensor> of_inputs_;
  uint64_t wanted_;
};

// `gradient` summed over the axes along which a tensor of `dims` was broadcast to the dims of `gradient`.
Tensor sum_to(const Tensor& gradient, const Dims& dims);
// The same for sizes of a recording.
Tensor sum_to(const Tensor& gradient, const SymDims& dims);

}  // namespace tenon::autograd
