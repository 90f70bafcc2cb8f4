// A run node by node.
#include <gtest/gtest.h>

#include "core/ops/ops.h"
#include "sdk/onnx/onnx.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx {
namespace {

// y = tanh(x + 2), with x + 2 as a second output z.
Model small_model() {
  ModelBuilder builder;
  builder.input("x", kFloat, {"3"});
  builder.output("y", kFloat, {"3"});
  builder.output("z", kFloat, {"3"});
  builder.weight<float>("two", kFloat, {}, {2.0f});
  builder.node("Add", {"x", "two"}, {"z"}, "sum");
  builder.node("Tanh", {"z"}, {"y"}, "bend");
  return load_bytes(builder.bytes());
}

Tensor numbers(const std::vector<float>& values) { return Tensor::from<float>(values, {3}); }

TEST(Walk, ShowsEachNodeOnceAndEnds) {
  const Model model = small_model();
  Walk walk(model, {{"x", numbers({-1, 0.5, 3})}});
  NodeResult result;
  ASSERT_TRUE(walk.next(&result));
  EXPECT_EQ(result.name, "sum");
  EXPECT_EQ(result.values, (std::vector<std::string>{"z"}));
  EXPECT_EQ(result.tensors.at(0).to_host<float>(), (std::vector<float>{1, 2.5, 5}));
  ASSERT_TRUE(walk.next(&result));
  EXPECT_EQ(result.op_type, "Tanh");
  EXPECT_EQ(result.tensors.at(0).to_host<float>(), tanh(numbers({1, 2.5, 5})).to_host<float>());
  EXPECT_FALSE(walk.next(&result));
  EXPECT_FALSE(walk.next(&result));
}

TEST(Walk, GoesOnWithWhatReplacesAValue) {
  const Model model = small_model();
  Walk walk(model, {{"x", numbers({-1, 0.5, 3})}});
  NodeResult result;
  ASSERT_TRUE(walk.next(&result));
  EXPECT_THROW(walk.replace(1, numbers({7, 8, 9})), Error);
  EXPECT_THROW(walk.replace(0, Tensor::from<float>(std::vector<float>{7}, {1})), Error);
  walk.replace(0, numbers({0.25, -0.5, 0.125}));
  ASSERT_TRUE(walk.next(&result));
  EXPECT_EQ(result.tensors.at(0).to_host<float>(), tanh(numbers({0.25, -0.5, 0.125})).to_host<float>());
}

}  // namespace
}  // namespace tenon::onnx
