// If, Loop and Scan, recorded and run node by node, against loops in C++; functions of a model.
#include <gtest/gtest.h>

#include "core/ops/ops.h"
#include "sdk/onnx/onnx.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx {
namespace {

using A = proto::AttributeProto;

Tensor floats(const std::vector<float>& values) {
  return Tensor::from<float>(values, {static_cast<int64_t>(values.size())});
}
Tensor number(int64_t value) { return full({}, Scalar(value), DType::i64); }
Tensor truth(bool value) { return full({}, Scalar(value), DType::boolean); }

// The outputs of the model when it is recorded, after checking that a run node by node gives the same.
TensorList run_both(const ModelBuilder& builder, const Inputs& inputs) {
  Options eager;
  eager.eager = true;
  const TensorList one = load_bytes(builder.bytes(), eager).run(inputs);
  const TensorList two = load_bytes(builder.bytes()).run(inputs);
  EXPECT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].dims(), two[i].dims());
    if (one[i].dtype() == DType::f32) {
      EXPECT_EQ(one[i].to_host<float>(), two[i].to_host<float>());
    }
  }
  return two;
}

// y = p ? x * w : x - w, where w belongs to the graph around the branches.
ModelBuilder branches() {
  ModelBuilder builder(16);
  builder.input("p", kBool, {});
  builder.input("x", kFloat, {"n"});
  builder.output("y", kFloat, {"n"});
  builder.weight<float>("w", kFloat, {1}, {3.0f});
  proto::NodeProto& node = builder.node("If", {"p"}, {"y"});
  ModelBuilder then_branch(16), else_branch(16);
  then_branch.node("Mul", {"x", "w"}, {"r"});
  then_branch.output("r", kFloat, {"n"});
  else_branch.node("Sub", {"x", "w"}, {"r"});
  else_branch.output("r", kFloat, {"n"});
  builder.graph(node, "then_branch", std::move(then_branch));
  builder.graph(node, "else_branch", std::move(else_branch));
  return builder;
}

TEST(Control, IfTakesTheBranchOfItsCondition) {
  const ModelBuilder builder = branches();
  const Tensor x = floats({1, -2, 5});
  EXPECT_EQ(run_both(builder, {{"p", truth(true)}, {"x", x}})[0].to_host<float>(), (std::vector<float>{3, -6, 15}));
  EXPECT_EQ(run_both(builder, {{"p", truth(false)}, {"x", x}})[0].to_host<float>(), (std::vector<float>{-2, -5, 2}));
}

// v = v * w + i for i below m, as long as `goes_on` of v is true; all v are stacked.
ModelBuilder loop(const std::string& condition) {
  ModelBuilder builder(16);
  builder.input("m", kInt64, {});
  builder.input("v", kFloat, {"2"});
  builder.output("last", kFloat, {"2"});
  builder.output("all", kFloat, {"n", "2"});
  builder.weight<float>("w", kFloat, {2}, {0.5f, -1.5f});
  builder.weight<float>("limit", kFloat, {}, {20.0f});
  ModelBuilder body(16);
  body.input("i", kInt64, {});
  body.input("c", kBool, {});
  body.input("now", kFloat, {"2"});
  body.node("Mul", {"now", "w"}, {"scaled"});
  proto::NodeProto& cast = body.node("Cast", {"i"}, {"f"});
  body.integer(cast, "to", kFloat);
  body.node("Add", {"scaled", "f"}, {"next"});
  if (condition == "data") {
    body.node("ReduceMax", {"next"}, {"most"});
    body.integers(body.graph().node.back(), "axes", {0});
    body.integer(body.graph().node.back(), "keepdims", 0);
    body.node("Less", {"most", "limit"}, {"go"});
  } else {
    body.node("Identity", {"c"}, {"go"});
  }
  body.node("Identity", {"next"}, {"step"});
  body.output("go", kBool, {});
  body.output("next", kFloat, {"2"});
  body.output("step", kFloat, {"2"});
  builder.graph(builder.node("Loop", {"m", "", "v"}, {"last", "all"}), "body", std::move(body));
  return builder;
}

void expect_loop(const std::string& condition, int64_t most, std::vector<float> v) {
  const ModelBuilder builder = loop(condition);
  const TensorList results = run_both(builder, {{"m", number(most)}, {"v", floats(v)}});
  std::vector<float> all;
  bool goes_on = true;
  for (int64_t i = 0; i < most && goes_on; ++i) {
    v = {v[0] * 0.5f + static_cast<float>(i), v[1] * -1.5f + static_cast<float>(i)};
    all.insert(all.end(), v.begin(), v.end());
    goes_on = condition != "data" || std::max(v[0], v[1]) < 20.0f;
  }
  EXPECT_EQ(results[0].to_host<float>(), v) << condition << " " << most;
  EXPECT_EQ(results[1].dims(), (Dims{static_cast<int64_t>(all.size()) / 2, 2})) << condition << " " << most;
  if (!all.empty()) {
    EXPECT_EQ(results[1].to_host<float>(), all) << condition << " " << most;
  }
}

TEST(Control, LoopRunsItsStepsAndStacksTheirResults) {
  for (int64_t most : {0, 1, 3, 11}) expect_loop("count", most, {1.0f, 2.0f});
}

TEST(Control, LoopEndsWithItsCondition) {
  for (int64_t most : {0, 1, 3, 40}) expect_loop("data", most, {1.0f, 2.0f});
}

TEST(Control, LoopMayGrowItsState) {
  ModelBuilder builder(16);
  builder.input("v", kFloat, {"1"});
  builder.output("last", kFloat, {"n"});
  builder.weight<int64_t>("m", kInt64, {}, {6});
  ModelBuilder body(16);
  body.input("i", kInt64, {});
  body.input("c", kBool, {});
  body.input("now", kFloat, {"n"});
  body.node("Identity", {"c"}, {"go"});
  body.integer(body.node("Concat", {"now", "v"}, {"next"}), "axis", 0);
  body.output("go", kBool, {});
  body.output("next", kFloat, {"n"});
  builder.graph(builder.node("Loop", {"m", "", "v"}, {"last"}), "body", std::move(body));
  EXPECT_EQ(run_both(builder, {{"v", floats({4})}})[0].to_host<float>(), std::vector<float>(7, 4.0f));
}

TEST(Control, ScanCarriesAStateBackwards) {
  ModelBuilder builder(16);
  builder.input("start", kFloat, {"2"});
  builder.input("x", kFloat, {"n", "2"});
  builder.output("last", kFloat, {"2"});
  builder.output("sums", kFloat, {"n", "2"});
  ModelBuilder body(16);
  body.input("sum", kFloat, {"2"});
  body.input("slice", kFloat, {"2"});
  body.node("Add", {"sum", "slice"}, {"next"});
  body.node("Identity", {"next"}, {"out"});
  body.output("next", kFloat, {"2"});
  body.output("out", kFloat, {"2"});
  proto::NodeProto& node = builder.node("Scan", {"start", "x"}, {"last", "sums"});
  builder.integer(node, "num_scan_inputs", 1);
  builder.integers(node, "scan_input_directions", {1});
  builder.integers(node, "scan_output_directions", {1});
  builder.graph(node, "body", std::move(body));
  const Tensor x = Tensor::from<float>(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  const TensorList results = run_both(builder, {{"start", floats({10, 20})}, {"x", x}});
  EXPECT_EQ(results[0].to_host<float>(), (std::vector<float>{19, 32}));
  EXPECT_EQ(results[1].to_host<float>(), (std::vector<float>{19, 32, 18, 30, 15, 26}));
}

// f(x; slope) = leaky_relu(x, slope) + x, called twice: with the default of slope and with a slope of the call.
TEST(Functions, AreExpandedWithTheAttributesOfTheirCalls) {
  ModelBuilder builder(16);
  builder.input("x", kFloat, {"n"});
  builder.output("y", kFloat, {"n"});
  ModelBuilder part(16);
  proto::NodeProto& leaky = part.node("LeakyRelu", {"a"}, {"b"});
  A& slope = part.attribute(leaky, "alpha", A::AttributeType_FLOAT);
  slope.ref_attr_name = "slope";
  ModelBuilder::mark(slope, A::k_ref_attr_name);
  part.node("Add", {"b", "a"}, {"c"});
  proto::FunctionProto& function = builder.model().functions.emplace_back();
  function.name = "Own";
  function.domain = "local";
  function.input = {"a"};
  function.output = {"c"};
  for (const auto field : {proto::FunctionProto::k_name, proto::FunctionProto::k_domain})
    ModelBuilder::mark(function, field);
  function.node = std::move(part.graph().node);
  A& initial = function.attribute_proto.emplace_back();
  initial.name = "slope";
  initial.type = A::AttributeType_FLOAT;
  initial.f = 0.5f;
  for (const auto field : {A::k_name, A::k_type, A::k_f}) ModelBuilder::mark(initial, field);
  proto::OperatorSetIdProto& import = builder.model().opset_import.emplace_back();
  import.domain = "local";
  import.version = 1;
  for (const auto field : {proto::OperatorSetIdProto::k_domain, proto::OperatorSetIdProto::k_version})
    ModelBuilder::mark(import, field);
  for (const bool first : {true, false}) {
    proto::NodeProto& call = builder.node("Own", {first ? "x" : "t"}, {first ? "t" : "y"});
    call.domain = "local";
    ModelBuilder::mark(call, proto::NodeProto::k_domain);
    if (first) continue;
    A& given = builder.attribute(call, "slope", A::AttributeType_FLOAT);
    given.f = 2.0f;
    ModelBuilder::mark(given, A::k_f);
  }
  // -2 gives -1 - 2 = -3, and then -6 - 3 = -9.
  EXPECT_EQ(run_both(builder, {{"x", floats({-2, 1})}})[0].to_host<float>(), (std::vector<float>{-9, 4}));
}

}  // namespace
}  // namespace tenon::onnx
