// Ended: the tensors behind the values of a recording whose program has run before its function was over. Internal.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/graph/functional.h"
#include "core/tensor/tensor.h"

namespace tenon::lazy {

class Ended {
 public:
  // `tensor` has the elements of `base`, and is written where values of that base are.
  void add(std::shared_ptr<graph::Base> base, Tensor tensor);
  bool knows(const graph::Base& base) const { return tensors_.count(&base) != 0; }
  // The tensor with the elements of `value`: a view of the tensor of its base. Errors: invalid_argument, for a value of
  // another recording.
  Tensor tensor_of(const Tensor& value) const;

 private:
  struct Known {
    std::shared_ptr<graph::Base> base;  // kept, so that no other base gets its address
    Tensor tensor;
  };
  std::map<const graph::Base*, Known> tensors_;
};

// What a value of a recording is a view of.
const std::shared_ptr<graph::Base>& base_of(const Tensor& value);

}  // namespace tenon::lazy
