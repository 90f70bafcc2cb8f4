// Ended: the tensors behind the values of a recording whose program ran before the function ended. Internal.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/graph/functional.h"
#include "core/tensor/tensor.h"

namespace tenon::compilation {

class Ended {
 public:
  // `tensor` has the elements of `base`. Later writes to values of that base go to `tensor`.
  void add(std::shared_ptr<graph::Base> base, Tensor tensor);
  bool knows(const graph::Base& base) const { return tensors_.count(&base) != 0; }
  // The tensor with the elements of `value`, as a view of its base's tensor. Errors: invalid_argument for a value of
  // another recording.
  Tensor tensor_of(const Tensor& value) const;

 private:
  struct Known {
    std::shared_ptr<graph::Base> base;  // kept alive so that its address is not reused
    Tensor tensor;
  };
  std::map<const graph::Base*, Known> tensors_;
};

// The base of a value of a recording.
const std::shared_ptr<graph::Base>& base_of(const Tensor& value);

}  // namespace tenon::compilation
