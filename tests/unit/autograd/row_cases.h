// Calls of ops that are not element-wise, whose gradients are compared with finite differences. rows_test.cpp makes the
// calls of element-wise ops itself.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace tenon {

struct RowCase {
  std::string name;
  std::vector<Dims> shapes;  // the shapes of the arguments that require gradients
  std::function<Tensor(const TensorList&)> call;
  double low = -1.5;
  double high = 1.5;
};

const std::vector<RowCase>& row_cases();

}  // namespace tenon
