// Calls of ops that are more than element-wise, whose gradients are compared with finite differences. Of element-wise
// ops rows_test.cpp makes the calls by itself.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace tenon {

struct RowCase {
  std::string name;
  std::vector<Dims> shapes;  // of the arguments that want gradients
  std::function<Tensor(const TensorList&)> call;
  double low = -1.5;
  double high = 1.5;
};

const std::vector<RowCase>& row_cases();

}  // namespace tenon
