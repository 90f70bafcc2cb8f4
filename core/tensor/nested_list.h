// NestedList: numbers in braces, {1, 2, 3} or {{1, 2}, {3, 4}}, as the elements of a new tensor.
#pragma once

#include <initializer_list>
#include <vector>

#include "core/tensor/scalar.h"
#include "primitives/shape/shape.h"

namespace tenon {

class NestedList {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> NestedList(T number) : number_(number) {}
  NestedList(Scalar number) : number_(number) {}
  NestedList(std::initializer_list<NestedList> list) : is_list_(true), list_(list) {}

  // The dims, taken from the first list of each depth.
  TENON_API Dims dims() const;
  // The numbers in row-major order. Errors: invalid_argument (lists of one depth differ in length).
  TENON_API std::vector<Scalar> numbers() const;

 private:
  bool is_list_ = false;
  Scalar number_;
  std::vector<NestedList> list_;
};

}  // namespace tenon
