// Compares fused nodes with the same nodes when every inner value is an output, which prevents fusing.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "sdk/onnx/onnx.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx {
namespace {

// Runs the model twice, the second time with all values as outputs. The first outputs must agree, and the first run
// must launch `ops`.
void expect_fused(const std::function<void(ModelBuilder&)>& build, const Inputs& inputs,
                  const std::vector<std::string>& ops) {
  ModelBuilder fused(17), plain(17);
  build(fused);
  build(plain);
  for (const proto::NodeProto& node : plain.graph().node) {
    const std::string name(node.output[0]);
    if (name != "y") plain.output(name, kFloat, {"a", "b"});
  }
  std::vector<NodeExecution> executions;
  const std::vector<float> a = load_bytes(fused.bytes()).run(inputs, &executions)[0].to_host<float>();
  const std::vector<float> b = load_bytes(plain.bytes()).run(inputs)[0].to_host<float>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5f * (1 + std::fabs(b[i]))) << i;
  std::vector<std::string> launched;
  for (const NodeExecution& p : executions) {
    if (p.op != "cast") launched.push_back(p.op);  // reorders between convolutions come from the layout pass
  }
  EXPECT_EQ(launched, ops);
}

void images(ModelBuilder& builder) {
  builder.input("x", kFloat, {"batch", "3", "h", "w"});
  builder.output("y", kFloat, {"batch", "4", "h", "w"});
  builder.weight("w", kFloat, {4, 3, 3, 3}, random_floats(108, 1));
}

Inputs image_inputs() { return {{"x", Tensor::from<float>(random_floats(2 * 3 * 7 * 6, 2), {2, 3, 7, 6})}}; }

TEST(Fuse, BatchNormGoesIntoTheWeights) {
  const auto build = [](ModelBuilder& builder) {
    images(builder);
    builder.weight("b", kFloat, {4}, random_floats(4, 3));
    const char* names[] = {"scale", "shift", "mean", "var"};
    for (uint32_t i = 0; i < 4; ++i) builder.weight(names[i], kFloat, {4}, random_floats(4, 4 + i, 0.5f, 1.5f));
    builder.node("Conv", {"x", "w", "b"}, {"c"});
    builder.node("BatchNormalization", {"c", "scale", "shift", "mean", "var"}, {"n"});
    builder.node("Relu", {"n"}, {"y"});
  };
  expect_fused(build, image_inputs(), {"conv"});
}

TEST(Fuse, ConvolutionTakesSumAndActivation) {
  const auto build = [](ModelBuilder& builder) {
    images(builder);
    builder.weight("v", kFloat, {4, 3, 3, 3}, random_floats(108, 9));
    builder.node("Conv", {"x", "w"}, {"c"});
    builder.node("Conv", {"x", "v"}, {"d"});
    builder.node("Add", {"d", "c"}, {"s"});
    builder.node("Relu", {"s"}, {"y"});
  };
  expect_fused(build, image_inputs(), {"conv", "conv"});
}

TEST(Fuse, ConvolutionTakesAClip) {
  const auto build = [](ModelBuilder& builder) {
    images(builder);
    builder.weight<float>("low", kFloat, {}, {0.0f});
    builder.weight<float>("high", kFloat, {}, {0.25f});
    builder.node("Conv", {"x", "w"}, {"c"});
    builder.node("Clip", {"c", "low", "high"}, {"y"});
  };
  expect_fused(build, image_inputs(), {"conv"});
}

void rows(ModelBuilder& builder) {
  builder.input("x", kFloat, {"batch", "rows", "8"});
  builder.output("y", kFloat, {"batch", "rows", "8"});
  builder.weight("w", kFloat, {8, 8}, random_floats(64, 1));
  builder.weight("b", kFloat, {8}, random_floats(8, 2));
}

Inputs row_inputs() { return {{"x", Tensor::from<float>(random_floats(2 * 5 * 8, 3), {2, 5, 8})}}; }

TEST(Fuse, ProductTakesBiasSumAndGelu) {
  const auto build = [](ModelBuilder& builder) {
    rows(builder);
    builder.weight<float>("root", kFloat, {}, {1.41421356f});
    builder.weight<float>("one", kFloat, {}, {1.0f});
    builder.weight<float>("half", kFloat, {}, {0.5f});
    builder.node("MatMul", {"x", "w"}, {"m"});
    builder.node("Add", {"b", "m"}, {"a"});
    builder.node("Div", {"a", "root"}, {"d"});
    builder.node("Erf", {"d"}, {"e"});
    builder.node("Add", {"e", "one"}, {"f"});
    builder.node("Mul", {"a", "f"}, {"g"});
    builder.node("Mul", {"g", "half"}, {"h"});
    builder.node("MatMul", {"h", "w"}, {"m2"});
    builder.node("Add", {"b", "m2"}, {"a2"});
    builder.node("Add", {"a2", "x"}, {"y"});
  };
  expect_fused(build, row_inputs(), {"matmul", "matmul"});
}

// The nodes x / root, erf, + one, * x, * half.
std::function<void(ModelBuilder&)> gelu_of(float root, float one, float half) {
  return [=](ModelBuilder& builder) {
    builder.input("x", kFloat, {"batch", "rows", "8"});
    builder.output("y", kFloat, {"batch", "rows", "8"});
    builder.weight<float>("root", kFloat, {}, {root});
    builder.weight<float>("one", kFloat, {}, {one});
    builder.weight<float>("half", kFloat, {}, {half});
    builder.node("Div", {"x", "root"}, {"d"});
    builder.node("Erf", {"d"}, {"e"});
    builder.node("Add", {"e", "one"}, {"f"});
    builder.node("Mul", {"x", "f"}, {"g"});
    builder.node("Mul", {"g", "half"}, {"y"});
  };
}

TEST(Fuse, OnlyTheNumbersOfGeluMakeOne) {
  constexpr float root = 1.41421356f;
  expect_fused(gelu_of(root, 1, 0.5f), row_inputs(), {"gelu"});
  const std::vector<std::string> apart = {"div", "erf", "add", "mul", "mul"};
  expect_fused(gelu_of(root * 1.001f, 1, 0.5f), row_inputs(), apart);
  expect_fused(gelu_of(root, 1.001f, 0.5f), row_inputs(), apart);
  expect_fused(gelu_of(root, 1, 0.5005f), row_inputs(), apart);
}

TEST(Fuse, NineNodesAreOneLayerNorm) {
  const auto build = [](ModelBuilder& builder) {
    rows(builder);
    builder.weight<float>("two", kFloat, {}, {2.0f});
    builder.weight<float>("eps", kFloat, {}, {1e-3f});
    builder.integers(builder.node("ReduceMean", {"x"}, {"m"}), "axes", {-1});
    builder.node("Sub", {"x", "m"}, {"s"});
    builder.node("Pow", {"s", "two"}, {"p"});
    builder.integers(builder.node("ReduceMean", {"p"}, {"v"}), "axes", {-1});
    builder.node("Add", {"v", "eps"}, {"a"});
    builder.node("Sqrt", {"a"}, {"r"});
    builder.node("Div", {"s", "r"}, {"d"});
    builder.node("Mul", {"d", "b"}, {"g"});
    builder.node("Add", {"g", "b"}, {"y"});
  };
  expect_fused(build, row_inputs(), {"layer_norm"});
}

struct Activation {
  const char* node;
  const char* op;  // Tenon's name
};
const Activation activations[] = {{"Relu", "relu"}, {"Tanh", "tanh"}, {"Sigmoid", "sigmoid"}, {"Clip", "clamp"}};

// x [1, 8] times w, plus z, then the activation.
void product_sum_activation(ModelBuilder& builder, const Activation& activation, const std::string& z_rows) {
  builder.input("x", kFloat, {"1", "8"});
  builder.input("z", kFloat, {z_rows, "8"});
  builder.output("y", kFloat, {z_rows, "8"});
  builder.weight("w", kFloat, {8, 8}, random_floats(64, 1));
  builder.weight<float>("low", kFloat, {}, {-0.25f});
  builder.weight<float>("high", kFloat, {}, {0.5f});
  builder.node("MatMul", {"x", "w"}, {"m"});
  builder.node("Add", {"m", "z"}, {"s"});
  const bool clip = activation.node == std::string("Clip");
  builder.node(activation.node, clip ? std::vector<std::string>{"s", "low", "high"} : std::vector<std::string>{"s"},
               {"y"});
}

Inputs rows_and(int64_t z_rows) {
  return {{"x", Tensor::from<float>(random_floats(8, 5), {1, 8})},
          {"z", Tensor::from<float>(random_floats(static_cast<size_t>(8 * z_rows), 6), {z_rows, 8})}};
}

TEST(Fuse, ProductTakesASumAndEachActivation) {
  for (const Activation& activation : activations) {
    SCOPED_TRACE(activation.node);
    expect_fused([&](ModelBuilder& builder) { product_sum_activation(builder, activation, "1"); }, rows_and(1),
                 {"matmul"});
  }
}

// The sum has the shape of its larger term. So the Add must not be fused, and the activation follows the sum.
TEST(Fuse, AWideningSumStaysASum) {
  for (const Activation& activation : activations) {
    SCOPED_TRACE(activation.node);
    expect_fused([&](ModelBuilder& builder) { product_sum_activation(builder, activation, "3"); }, rows_and(3),
                 {"matmul", "add", activation.op});
  }
}

}  // namespace
}  // namespace tenon::onnx
