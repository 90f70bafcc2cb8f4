// Shared by the programs of this folder: numbers that are equal on every rank, and times of the slowest rank.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "core/global/communicator.h"
#include "core/tensor/tensor.h"

namespace tenon::bench {

inline double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

inline Tensor numbers(int64_t rows, int64_t columns, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> draw(-0.1F, 0.1F);
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (float& value : values) value = draw(generator);
  return Tensor::from(std::span<const float>(values), {rows, columns}, Device::host());
}

// Seconds of a call on the slowest rank.
inline double seconds_of(global::Communicator& world, const std::function<void()>& call) {
  throw_if_error(world.barrier());
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  call();
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  throw_if_error(world.all_reduce(&seconds, &seconds, 1, DType::f64, global::Reduction::max));
  return seconds;
}

}  // namespace tenon::bench
