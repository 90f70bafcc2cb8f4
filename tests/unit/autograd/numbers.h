// Tensors of given or random numbers, copies of elements on the host, and error texts, for tests of gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/autograd/autograd.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"

namespace tenon {

// Numbers between `low` and `high`, the same for the same seed.
inline Tensor random_tensor(const Dims& dims, uint32_t seed, double low = 0.2, double high = 0.8) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> values(low, high);
  std::vector<double> data(static_cast<size_t>(element_count(dims)));
  for (double& value : data) value = values(random);
  return Tensor::from<double>(data, dims);
}

inline Tensor with_values(const std::vector<double>& values, const Dims& dims) {
  return Tensor::from<double>(values, dims);
}

using Values = std::vector<double>;

// A vector of f64 that requires a gradient.
inline Tensor leaf(const Values& values) {
  return with_values(values, {static_cast<int64_t>(values.size())}).requires_grad_();
}

// The message of the error that `function` throws.
template <class Function>
std::string error_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline std::vector<double> numbers(const Tensor& x) { return cast(x, DType::f64).to_host<double>(); }

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace tenon
