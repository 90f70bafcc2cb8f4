// Records code with every size open, and compares its runs at other sizes with the same code run eagerly.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/graph/recorder.h"
#include "core/graph/signature.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::graph {

using OpenCode = std::function<TensorList(const TensorList&)>;

inline Tensor random_input(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(0.5f, 2.0f);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (float& value : data) value = values(random);
  return Tensor::from<float>(data, dims);
}

inline TensorList random_inputs(const std::vector<Dims>& shapes) {
  TensorList inputs;
  for (const Dims& dims : shapes) inputs.push_back(random_input(dims, static_cast<uint32_t>(inputs.size()) + 1));
  return inputs;
}

// Records `code` for f32 inputs of `hints`. Each axis is a symbol of its own: "s0.1" is axis 1 of input 0.
inline Graph record_open(const std::vector<Dims>& hints, const OpenCode& code) {
  Recorder recorder(Device::current());
  InterpreterScope scope(recorder);
  TensorList inputs;
  for (size_t i = 0; i < hints.size(); ++i) {
    std::vector<std::string> symbols;
    for (int32_t axis = 0; axis < hints[i].rank(); ++axis) symbols.push_back(fmt::format("s{}.{}", i, axis));
    inputs.push_back(recorder.input(DType::f32, hints[i], symbols));
  }
  return recorder.finish(code(inputs));
}

// Returns why `graph` cannot be used for inputs of these shapes, without the number of its recording.
inline std::string why_not_for(const Graph& graph, const std::vector<Dims>& shapes) {
  symbolic::Values sizes(graph.arena());
  std::string why = why_not(graph, random_inputs(shapes), &sizes);
  if (why.starts_with(graph.arena().name())) why.replace(0, graph.arena().name().size(), "recording");
  return why;
}

inline void expect_bits(const Tensor& result, const Tensor& expected) {
  ASSERT_EQ(result.dims(), expected.dims());
  ASSERT_EQ(result.dtype(), expected.dtype());
  const auto bytes = static_cast<size_t>(expected.bytes());
  std::vector<unsigned char> a(bytes), b(bytes);
  result.copy_to_host(a.data());
  expected.copy_to_host(b.data());
  EXPECT_TRUE(bytes == 0 || std::memcmp(a.data(), b.data(), bytes) == 0);
}

// Expects that `graph` accepts these shapes, and that its results have the bits of `code` run eagerly.
inline void expect_serves(const Graph& graph, const std::vector<Dims>& shapes, const OpenCode& code) {
  SCOPED_TRACE(fmt::format("with the first input of {}", shapes[0]));
  const TensorList inputs = random_inputs(shapes);
  symbolic::Values sizes(graph.arena());
  ASSERT_EQ(why_not(graph, inputs, &sizes), "");
  const TensorList results = run(prepare(graph, &sizes, {.whole_graphs = false}), inputs);
  const TensorList expected = code(inputs);
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) expect_bits(results[i], expected[i]);
}

}  // namespace tenon::graph
