// Backward: the view of a call and its gradients that the gradient function of a row gets. Internal.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/op_node.h"
#include "core/ops/size_list.h"
#include "core/ops/sizes.h"
#include "core/tensor/tensor.h"

namespace tenon::autograd {

// Valid only during the call of the gradient function.
class Backward {
 public:
  Backward(const OpNode& node, std::span<const Tensor> of_results, uint64_t wanted, std::span<Tensor> of_inputs)
      : node_(node), of_results_(of_results), of_inputs_(of_inputs), wanted_(wanted) {}

  const OpInfo& op() const { return node_.op(); }
  size_t input_count() const { return of_inputs_.size(); }
  size_t result_count() const { return of_results_.size(); }
  // True if the gradient of input `i` is needed.
  bool wants(size_t i) const { return (wanted_ >> i & 1) != 0; }
  // The gradient of a result. It is always defined if the op has only one result.
  const Tensor& grad(size_t result = 0) const { return of_results_[result]; }
  std::span<const Tensor> grads() const { return of_results_; }

  // True if input `i` was given and is saved.
  bool has(size_t i) const { return node_.holds_input(i); }
  // The saved input. Throws invalid_argument, naming both ops, if it was written since.
  Tensor input(size_t i) const { return node_.saved_input(i); }
  Tensor result(size_t i = 0) const { return node_.saved_result(i); }
  // Calls function(x), where x is the saved input `i` of an element-wise op: a tensor or a number.
  template <class Function>
  void with(size_t i, const Function& function) const {
    bind_patches();
    node_.holds_input(i) ? function(input(i)) : function(node_.scalar(i));
  }

  // Reading attributes and scalars that are expressions of a recording binds the recording to their values;
  // `general_attributes` and `size_of` read them without binding.
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
  // `field`, an i64 of the attributes; the expression if the recording holds one.
  SymDim size_of(const int64_t& field) const;

  // The dims of an input that wants a gradient. Reading them binds open sizes of a recording; `general` reads them
  // without binding.
  const Dims& dims(size_t i) const;
  bool is_open(size_t i) const {
    return node_.shape(i) != nullptr ? node_.shape(i)->open != nullptr : tenon::is_open(first_grad());
  }
  // The dims; open ones as expressions.
  SymDims sizes(size_t i) const;
  // The result of function(dims), where dims are the dims of input `i` in the form that ops take.
  template <class Function>
  Tensor general(size_t i, const Function& function) const {
    return is_open(i) ? function(IntList(SizeList(sizes(i)))) : function(IntList(dims(i)));
  }
  DType dtype(size_t i) const { return node_.shape(i) != nullptr ? node_.shape(i)->dtype : of_results_[0].dtype(); }

  // Sets the gradient of input `i`: sums it over the axes along which forward broadcast the input, then converts it to
  // the input's dtype and device.
  void give(size_t i, Tensor gradient) const;

 private:
  void bind_patches() const;
  // The first defined gradient of the results.
  const Tensor& first_grad() const;

  const OpNode& node_;
  std::span<const Tensor> of_results_;
  std::span<Tensor> of_inputs_;
  uint64_t wanted_;
};

// `gradient` summed over the axes along which a tensor of `dims` was broadcast to the dims of `gradient`.
Tensor sum_to(const Tensor& gradient, const Dims& dims);
// Like the other sum_to, for sizes of a recording.
Tensor sum_to(const Tensor& gradient, const SymDims& dims);

}  // namespace tenon::autograd
