// Operators of com.microsoft on quantised tensors, against loops over their numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx {
namespace {

using Bytes = std::vector<uint8_t>;

void of_microsoft(ModelBuilder* builder, proto::NodeProto* node) {
  node->domain = builder->keep("com.microsoft");
  ModelBuilder::mark(*node, proto::NodeProto::k_domain);
  proto::OperatorSetIdProto& import = builder->model().opset_import.emplace_back();
  import.domain = builder->keep("com.microsoft");
  import.version = 1;
  ModelBuilder::mark(import, proto::OperatorSetIdProto::k_domain);
  ModelBuilder::mark(import, proto::OperatorSetIdProto::k_version);
}

Bytes random_bytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() & 0xff);
  return bytes;
}

uint8_t quantised(float x, float scale, int zero) {
  return static_cast<uint8_t>(std::clamp(std::nearbyint(x / scale) + static_cast<float>(zero), 0.0f, 255.0f));
}

// At most one step off: a mean may lie halfway between two.
void expect_near(const Bytes& found, const Bytes& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1) << i;
}

TEST(Microsoft, ConcatOfNumbersOfOtherScales) {
  ModelBuilder builder;
  builder.input("a", kUint8, {"2", "n"});
  builder.input("b", kUint8, {"2", "m"});
  builder.output("y", kUint8, {"2", "k"});
  const float scales[] = {0.5f, 0.25f, 0.75f};
  const uint8_t zeros[] = {10, 100, 131};
  for (int i = 0; i < 3; ++i) {
    builder.weight<float>(fmt::format("s{}", i), kFloat, {}, {scales[i]});
    builder.weight<uint8_t>(fmt::format("z{}", i), kUint8, {}, {zeros[i]});
  }
  proto::NodeProto& node = builder.node("QLinearConcat", {"s0", "z0", "a", "s1", "z1", "b", "s2", "z2"}, {"y"});
  builder.integer(node, "axis", 1);
  of_microsoft(&builder, &node);
  const Bytes a = random_bytes(2 * 37, 1), b = random_bytes(2 * 50, 2);
  Bytes expected;
  for (size_t row = 0; row < 2; ++row) {
    for (size_t i = 0; i < 37; ++i)
      expected.push_back(quantised(0.25f * static_cast<float>(a[row * 37 + i] - 100), 0.5f, 10));
    for (size_t i = 0; i < 50; ++i)
      expected.push_back(quantised(0.75f * static_cast<float>(b[row * 50 + i] - 131), 0.5f, 10));
  }
  const Model model = load_bytes(builder.bytes());
  const TensorList results =
      model.run({{"a", Tensor::from<uint8_t>(a, {2, 37})}, {"b", Tensor::from<uint8_t>(b, {2, 50})}});
  EXPECT_EQ(results[0].to_host<uint8_t>(), expected);
}

TEST(Microsoft, AveragePoolOfNumbers) {
  for (const int64_t counts_pads : {0, 1}) {
    ModelBuilder builder;
    builder.input("x", kUint8, {"1", "3", "6", "7"});
    builder.output("y", kUint8, {"1", "3", "3", "4"});
    builder.weight<float>("xs", kFloat, {}, {0.125f});
    builder.weight<uint8_t>("xz", kUint8, {}, {120});
    builder.weight<float>("ys", kFloat, {}, {0.1f});
    builder.weight<uint8_t>("yz", kUint8, {}, {90});
    proto::NodeProto& node = builder.node("QLinearAveragePool", {"x", "xs", "xz", "ys", "yz"}, {"y"});
    builder.integers(node, "kernel_shape", {3, 3});
    builder.integers(node, "strides", {2, 2});
    builder.integers(node, "pads", {1, 1, 0, 1});
    builder.integer(node, "count_include_pad", counts_pads);
    of_microsoft(&builder, &node);
    const Bytes x = random_bytes(3 * 6 * 7, 3);
    Bytes expected;
    for (int c = 0; c < 3; ++c) {
      for (int row = 0; row < 3; ++row) {
        for (int column = 0; column < 4; ++column) {
          float sum = 0;
          int count = 0;
          for (int i = 2 * row - 1; i < 2 * row + 2; ++i) {
            for (int j = 2 * column - 1; j < 2 * column + 2; ++j) {
              if (i < 0 || i >= 6 || j < 0 || j >= 7) continue;
              sum += 0.125f * static_cast<float>(x[static_cast<size_t>((c * 6 + i) * 7 + j)] - 120);
              ++count;
            }
          }
          expected.push_back(quantised(sum / static_cast<float>(counts_pads != 0 ? 9 : count), 0.1f, 90));
        }
      }
    }
    const TensorList results = load_bytes(builder.bytes()).run({{"x", Tensor::from<uint8_t>(x, {1, 3, 6, 7})}});
    expect_near(results[0].to_host<uint8_t>(), expected);
  }
}

TEST(Microsoft, ConcatWithoutAZeroPointIsRefused) {
  ModelBuilder builder;
  builder.input("a", kUint8, {"2"});
  builder.output("y", kUint8, {"2"});
  builder.weight<float>("s", kFloat, {}, {1.0f});
  builder.weight<uint8_t>("z", kUint8, {}, {0});
  proto::NodeProto& node = builder.node("QLinearConcat", {"s", "z", "a", "s"}, {"y"});
  builder.integer(node, "axis", 0);
  of_microsoft(&builder, &node);
  try {
    load_bytes(builder.bytes());
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("it has 4 inputs; two and three for each part are possible"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tenon::onnx
