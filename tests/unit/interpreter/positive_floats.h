// Random floats in [0.25, 2]. The same seed gives the same floats.
#pragma once

#include <random>
#include <vector>

#include "core/tensor/tensor.h"

namespace tenon {

inline Tensor positive_floats(const Dims& dims, uint32_t seed, Device device) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(0.25f, 2.0f);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (float& value : data) value = values(engine);
  return Tensor::from<float>(data, dims, device);
}

}  // namespace tenon
