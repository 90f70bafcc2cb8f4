// LentMemory: memory that a test lends to tensors, and the number of times it was given back. Values are random and
// never zero.
#pragma once

#include <atomic>
#include <memory>
#include <random>
#include <vector>

#include "core/tensor/tensor.h"

namespace tenon::testing {

inline std::vector<float> random_floats(std::mt19937_64& random, size_t count) {
  std::uniform_real_distribution<float> magnitudes(0.25f, 2.0f);
  std::vector<float> values(count);
  for (float& value : values) value = random() % 2 == 0 ? magnitudes(random) : -magnitudes(random);
  return values;
}

// Shared with the deleter, because the deleter may run after the test's own handle is gone.
struct LentMemory {
  std::vector<float> values;
  std::atomic<int> returned{0};

  static std::shared_ptr<LentMemory> of(std::vector<float> values) {
    auto lent = std::make_shared<LentMemory>();
    lent->values = std::move(values);
    return lent;
  }
};

inline Tensor borrow(const std::shared_ptr<LentMemory>& lent, const Dims& dims, const Dims& strides = {}) {
  return Tensor::borrow(lent->values.data(), dims, strides, DType::f32, [lent] { ++lent->returned; });
}

// The values of `memory` in row-major order of `dims`, found by `strides`.
inline std::vector<float> walk(const std::vector<float>& memory, const Dims& dims, const Dims& strides) {
  std::vector<float> values;
  const int64_t count = element_count(dims);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, at = 0;
    for (int32_t axis = dims.rank() - 1; axis >= 0; --axis) {
      at += rest % dims[axis] * strides[axis];
      rest /= dims[axis];
    }
    values.push_back(memory[static_cast<size_t>(at)]);
  }
  return values;
}

}  // namespace tenon::testing
