// Random tensors, a step of training, and checks of errors.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/autograd/autograd.h"
#include "core/compile/compile.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"

namespace tenon {

// Numbers between 0.5 and 2, the same for the same seed.
inline Tensor random_tensor(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(0.5f, 2.0f);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (float& value : data) value = values(random);
  return Tensor::from<float>(data, dims);
}

// Moves each leaf against the gradient of `loss`, and clears the gradients.
inline void descend(const Tensor& loss, const TensorList& leaves, double rate) {
  loss.backward();
  const NoGrad scope;
  for (Tensor leaf : leaves) {
    sub_(leaf, leaf.grad() * rate);
    leaf.set_grad({});
  }
}

inline std::vector<float> elements(const Tensor& tensor) { return contiguous(tensor).to_host<float>(); }

// The text of the error that `code` throws, with its remedy; empty: it throws none.
inline std::string error_of(const std::function<void()>& code) {
  try {
    code();
  } catch (const Error& error) {
    return error.what() + std::string("\n") + std::string(error.status().remedy());
  }
  return "";
}

inline ::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in:\n" << text;
}

}  // namespace tenon
