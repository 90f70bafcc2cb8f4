// Helpers for tests of global tensors: makes equal tensors on every rank, spreads them and compares them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "core/global/global.h"
#include "core/ops/ops.h"

namespace tenon::global {

constexpr Sbp S0 = Sbp::split(0), S1 = Sbp::split(1), S2 = Sbp::split(2), B = Sbp::broadcast(), P = Sbp::partial();

inline int32_t ranks() { return world_size(); }

// The devices of the placements, one per rank: GLOBAL_DEVICES, or the host's device.
inline std::string_view devices() {
  const char* named = std::getenv("GLOBAL_DEVICES");
  return named != nullptr ? named : "cpu";
}
inline Device own_device() { return Placement::all(devices()).device(); }

// Small whole numbers, so that sums are exact in every order; never 0.
inline Tensor some(const Dims& dims, uint64_t seed, DType dtype = DType::f32) {
  std::mt19937_64 generator(seed);
  std::vector<float> values(static_cast<size_t>(element_count(dims)));
  for (float& value : values) value = static_cast<float>(static_cast<int>(generator() % 8) * 2 - 7);
  return Tensor::from(std::span<const float>(values), dims, own_device()).to(dtype);
}

// The elements as doubles. Does not use casts, because they would be ops of their own.
inline std::vector<double> elements_of(const Tensor& tensor) {
  const auto widened = [](const auto& values) { return std::vector<double>(values.begin(), values.end()); };
  if (tensor.dtype() == DType::f32) return widened(tensor.to_host<float>());
  if (tensor.dtype() == DType::i64) return widened(tensor.to_host<int64_t>());
  return tensor.to_host<double>();
}

inline void expect_same(const Tensor& actual, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.dims(), expected.dims()) << what;
  EXPECT_EQ(elements_of(actual), elements_of(expected)) << what;
}

// Returns `whole` as a global tensor in this layout.
inline Tensor spread(const Tensor& whole, const Placement& placement, const NdSbp& sbp) {
  const NdSbp everywhere = NdSbp::filled(placement.grid().rank(), B);
  return to_global(to_global(whole, placement, everywhere), sbp);
}

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.status().message();
  }
  return "no error";
}

}  // namespace tenon::global
