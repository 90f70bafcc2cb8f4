// Files that break ONNX's rules. load() refuses each with a sentence of its own.
#include <gtest/gtest.h>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"
#include "sdk/onnx/schema/schema.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx {
namespace {

using A = proto::AttributeProto;

std::string refusal_of(const ModelBuilder& builder) {
  try {
    load_bytes(builder.bytes());
  } catch (const Error& error) {
    return error.what();
  }
  return "(loaded)";
}

void expect_refusal(const ModelBuilder& builder, const std::string& part) {
  const std::string text = refusal_of(builder);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

ModelBuilder with_node(const std::string& op, int64_t opset = 17, int32_t type = kFloat) {
  ModelBuilder builder(opset);
  builder.input("x", type, {"2", "3"});
  builder.output("y", type, {"2", "3"});
  builder.node(op, {"x"}, {"y"}, "first");
  return builder;
}

proto::NodeProto& first(ModelBuilder& builder) { return builder.graph().node[0]; }

void text(ModelBuilder& builder, proto::NodeProto& node, const std::string& name, const std::string& value) {
  A& a = builder.attribute(node, name, A::AttributeType_STRING);
  a.s = builder.keep(value);
  ModelBuilder::mark(a, A::k_s);
}

void number(ModelBuilder& builder, proto::NodeProto& node, const std::string& name, float value) {
  A& a = builder.attribute(node, name, A::AttributeType_FLOAT);
  a.f = value;
  ModelBuilder::mark(a, A::k_f);
}

TEST(Rules, AnAttributeHoldsWhatItsTagSays) {
  ModelBuilder lying = with_node("LeakyRelu");
  A& alpha = lying.attribute(first(lying), "alpha", A::AttributeType_FLOAT);
  alpha.i = 3;
  ModelBuilder::mark(alpha, A::k_i);
  expect_refusal(lying, "node 0 (first) has the attribute 'alpha', which is marked as a float and holds an int.");
  ModelBuilder twofold = with_node("LeakyRelu");
  number(twofold, first(twofold), "alpha", 0.5f);
  first(twofold).attribute.back().ints = {1};
  expect_refusal(twofold, "the attribute 'alpha' with both a float and a list of ints");
  ModelBuilder foreign = with_node("LeakyRelu");
  foreign.attribute(first(foreign), "alpha", 99).f = 1;
  expect_refusal(foreign, "its attribute 'alpha' must be a float, not a type or a list of tensors or graphs");
}

TEST(Rules, AnAttributeThatIsZeroNeedsNoField) {
  ModelBuilder builder = with_node("LeakyRelu");
  builder.attribute(first(builder), "alpha", A::AttributeType_FLOAT);
  const Model model = load_bytes(builder.bytes());
  const Tensor y = model.run({{"x", full({2, 3}, Scalar(-7.0), DType::f32)}})[0];
  EXPECT_EQ(y.to_host<float>(), std::vector<float>(6, -0.0f));
}

TEST(Rules, AnAttributeWithoutATagIsReadByItsField) {
  ModelBuilder builder = with_node("LeakyRelu");
  number(builder, first(builder), "alpha", 0.5f);
  A& alpha = first(builder).attribute.back();
  alpha.type = 0;
  alpha.present &= ~(1u << A::k_type);
  const Model model = load_bytes(builder.bytes());
  const Tensor y = model.run({{"x", full({2, 3}, Scalar(-7.0), DType::f32)}})[0];
  EXPECT_EQ(y.to_host<float>(), std::vector<float>(6, -3.5f));
}

TEST(Rules, AnOperatorHasItsAttributesAndNoOthers) {
  ModelBuilder unknown = with_node("Relu");
  unknown.integer(first(unknown), "axis", 1);
  expect_refusal(unknown, "node 0 (first): Relu: it has the attribute 'axis', which the operator does not have");
  ModelBuilder twice = with_node("Softmax");
  twice.integer(first(twice), "axis", 1);
  twice.integer(first(twice), "axis", 0);
  expect_refusal(twice, "node 0 (first) has two attributes with the name 'axis'");
  ModelBuilder kind = with_node("Softmax");
  kind.integers(first(kind), "axis", {1});
  expect_refusal(kind, "Softmax: its attribute 'axis' must be an int, not a list of ints");
  ModelBuilder missing = with_node("LRN");
  expect_refusal(missing, "LRN: its attribute 'size' is missing");
}

TEST(Rules, AttributesOfOlderVersionsCountThereOnly) {
  const auto clip = [](int64_t opset) {
    ModelBuilder builder = with_node("Clip", opset);
    number(builder, first(builder), "min", 0.0f);
    return builder;
  };
  const Tensor y = load_bytes(clip(10).bytes()).run({{"x", full({2, 3}, Scalar(-7.0), DType::f32)}})[0];
  EXPECT_EQ(y.to_host<float>(), std::vector<float>(6, 0.0f));
  expect_refusal(clip(11), "Clip: it has the attribute 'min', which the operator does not have in version 11");
  ModelBuilder legacy = with_node("Relu", 1);
  legacy.integers(first(legacy), "consumed_inputs", {0});
  EXPECT_EQ(refusal_of(legacy), "(loaded)");
}

// Formerly importer/fuse added its steps as attributes, which a file could set too.
TEST(Rules, NoFileReachesWhatFusionAdds) {
  for (const char* name : {"activation", "activation_bounds"}) {
    ModelBuilder builder = with_node("MatMul");
    builder.weight<float>("w", kFloat, {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
    builder.weight<float>("b", kFloat, {3}, {-1, -2, -3});
    first(builder).input = {"x", "w"};
    first(builder).output = {"m"};
    builder.node("Add", {"m", "b"}, {"y"}, "sum");
    if (name == std::string("activation")) {
      text(builder, first(builder), name, "relu");
    } else {
      builder.attribute(first(builder), name, A::AttributeType_STRINGS).strings = {"a", "b"};
    }
    expect_refusal(builder, fmt::format("MatMul: it has the attribute '{}'", name));
  }
}

TEST(Rules, AnAttributeHasOneOfItsValues) {
  ModelBuilder builder;
  builder.input("x", kFloat, {"1", "1", "4", "4"});
  builder.output("y", kFloat, {"1", "1", "h", "w"});
  builder.weight<float>("w", kFloat, {1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  text(builder, builder.node("Conv", {"x", "w"}, {"y"}, "window"), "auto_pad", "SAME");
  expect_refusal(builder,
                 "node 0 (window): Conv: its attribute 'auto_pad' is 'SAME'; it may be 'NOTSET', 'SAME_UPPER', "
                 "'SAME_LOWER' or 'VALID'");
  ModelBuilder norm = with_node("LpNormalization");
  norm.integer(first(norm), "p", 3);
  expect_refusal(norm, "its attribute 'p' is '3'; it may be '1' or '2'");
}

TEST(Rules, AKernelShapeRepeatsThatOfTheWeights) {
  for (const char* op : {"Conv", "ConvTranspose"}) {
    ModelBuilder builder;
    builder.input("x", kFloat, {"1", "1", "4", "4"});
    builder.output("y", kFloat, {"1", "1", "h", "w"});
    builder.weight<float>("w", kFloat, {1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
    builder.integers(builder.node(op, {"x", "w"}, {"y"}, "window"), "kernel_shape", {3, 2});
    expect_refusal(builder, std::string(op) + ": its attribute 'kernel_shape' is [3, 2]; [3, 3] is expected");
  }
}

TEST(Rules, AConstantHoldsOneValue) {
  ModelBuilder builder;
  builder.output("y", kFloat, {});
  proto::NodeProto& node = builder.node("Constant", {}, {"y"}, "both");
  number(builder, node, "value_float", 1.5f);
  builder.integer(node, "value_int", 3);
  expect_refusal(builder,
                 "node 0 (both): Constant (version 17): it holds 2 values, value_float and value_int among them");
}

TEST(Rules, ANodeHasAsManyInputsAndOutputsAsItsOperator) {
  ModelBuilder more = with_node("Relu");
  first(more).input.push_back("x");
  expect_refusal(more, "node 0 (first): Relu: it has 2 inputs; the operator has 1 in version 14");
  ModelBuilder fewer = with_node("Add");
  expect_refusal(fewer, "Add: it has 1 inputs; the operator has 2 in version 14");
  ModelBuilder absent = with_node("Add");
  first(absent).input = {"", "x"};
  expect_refusal(absent, "Add: its input 0, 'A', is left out, but must be there");
  ModelBuilder outputs = with_node("Relu");
  first(outputs).output.push_back("z");
  expect_refusal(outputs, "Relu: it has 2 outputs; the operator has 1");
  ModelBuilder none = with_node("Sum");
  first(none).input.clear();
  expect_refusal(none, "Sum: it has 0 inputs; the operator has 1 or more");
  ModelBuilder five = with_node("Slice");
  first(five).input = {"x", "x", "x", "x", "x", "x"};
  expect_refusal(five, "Slice: it has 6 inputs; the operator has 3 to 5");
}

TEST(Rules, InputsAreOfTypesThatTheOperatorTakes) {
  ModelBuilder logic = with_node("And");
  first(logic).input.push_back("x");
  expect_refusal(logic, "node 0 (first): And: its input 0, 'A', is of f32; And takes bool in version 7");
  ModelBuilder old = with_node("Relu", 13, kInt32);
  expect_refusal(old, "Relu: its input 0, 'X', is of i32; Relu takes f16, bf16, f32 and f64 in version 13");
  EXPECT_EQ(refusal_of(with_node("Relu", 14, kInt32)), "(loaded)");
  ModelBuilder mixed = with_node("Where");
  mixed.input("c", kBool, {"2", "3"});
  mixed.input("i", kInt32, {"2", "3"});
  first(mixed).input = {"c", "x", "i"};
  expect_refusal(mixed, "its input 2, 'Y', is of i32, but its input 1, 'X', is of f32; both must be of one type");
}

// The sum is fused into the product, so only a check of the file's own nodes detects the integers.
TEST(Rules, TypesAreHeldAgainstTheNodesOfTheFile) {
  ModelBuilder builder;
  builder.input("x", kFloat, {"n", "3"});
  builder.input("z", kInt32, {"n", "3"});
  builder.output("y", kFloat, {"n", "3"});
  builder.weight<float>("w", kFloat, {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  builder.node("MatMul", {"x", "w"}, {"m"}, "product");
  builder.node("Add", {"m", "z"}, {"y"}, "sum");
  expect_refusal(builder, "node 1 (sum): Add: its input 1, 'B', is of i32, but its input 0, 'A', is of f32");
}

TEST(Rules, AnOutputIsOfItsDeclaredType) {
  ModelBuilder builder = with_node("Relu");
  builder.output("h", kFloat, {"2"});
  builder.node("Shape", {"x"}, {"h"});
  expect_refusal(builder, "its output 'h' is declared as f32, but the nodes make i64");
  ModelBuilder attribute = with_node("EyeLike", 17, kInt32);
  attribute.graph().output[0].type->tensor_type->elem_type = kFloat;
  expect_refusal(attribute, "its output 'y' is declared as f32, but the nodes make i32");
}

TEST(Rules, PartsThatAreNotGivenAreEqualBeforeVersion18) {
  const auto split = [](int64_t opset) {
    ModelBuilder builder(opset);
    builder.input("x", kFloat, {"5"});
    builder.output("y", kFloat, {"3"});
    builder.output("z", kFloat, {"2"});
    builder.node("Split", {"x"}, {"y", "z"}, "parts");
    return builder;
  };
  expect_refusal(split(13), "an axis of length 5 cannot be cut into 2 equal parts, as versions before 18 require");
  expect_refusal(split(18), "it must have either the input 'split' or the attribute 'num_outputs'");
  ModelBuilder told = split(18);
  told.integer(first(told), "num_outputs", 2);
  EXPECT_EQ(refusal_of(told), "(loaded)");
}

TEST(Rules, TargetsAreAsManyAsTheScores) {
  ModelBuilder builder;
  builder.input("x", kFloat, {"4", "5"});
  builder.input("t", kInt64, {"3"});
  builder.output("y", kFloat, {});
  builder.node("NegativeLogLikelihoodLoss", {"x", "t"}, {"y"}, "loss");
  expect_refusal(builder, "its input 1, 'target', has the shape [3]; [4] is expected");
}

TEST(Rules, InputsHaveNamesOfTheirOwn) {
  ModelBuilder twice = with_node("Relu");
  twice.input("x", kFloat, {"5"});
  expect_refusal(twice, "it has two inputs with the name 'x'");
  ModelBuilder weights = with_node("Relu");
  weights.weight<float>("w", kFloat, {1}, {1});
  weights.input("w", kFloat, {"1"});
  EXPECT_EQ(refusal_of(weights), "(loaded)") << "files of before IR version 4 list weights as inputs";
  ModelBuilder nameless = with_node("Relu");
  nameless.input("", kFloat, {"5"});
  expect_refusal(nameless, "it has an input without a name");
}

TEST(Rules, AFileIsOfAVersionThatIsKnown) {
  ModelBuilder future = with_node("Relu");
  future.model().ir_version = 9999;
  expect_refusal(future, "the file is of IR version 9999; versions up to 14 are known");
  ModelBuilder none = with_node("Relu");
  none.model().present &= ~(1u << proto::ModelProto::k_ir_version);
  none.model().ir_version = 0;
  expect_refusal(none, "its IR version is 0; the first is 1");
  ModelBuilder silent = with_node("Relu");
  silent.model().opset_import.clear();
  expect_refusal(silent, "it does not state the versions of its operators");
}

TEST(Rules, OfSeveralVersionsTheHighestCounts) {
  for (const int64_t opset : {6, 11}) {
    ModelBuilder builder = with_node("Softmax", opset);
    proto::OperatorSetIdProto& other = builder.model().opset_import.emplace_back();
    other.version = opset == 6 ? 11 : 6;
    ModelBuilder::mark(other, proto::OperatorSetIdProto::k_version);
    EXPECT_EQ(load_bytes(builder.bytes()).info().opset, 11);
  }
  ModelBuilder old = with_node("Relu");
  old.model().ir_version = 2;
  old.model().opset_import.clear();
  EXPECT_EQ(load_bytes(old.bytes()).info().opset, 1) << "files of before IR version 3 are of the first operators";
}

TEST(Rules, ADimIsNotNegative) {
  ModelBuilder builder = with_node("Relu");
  builder.input("z", kFloat, {"-3"});
  expect_refusal(builder, "'z' has the negative dim -3");
}

TEST(Rules, WhatNothingTranslatesIsRefused) {
  const auto normalisation = [](int64_t opset, const std::string& attribute, size_t outputs) {
    ModelBuilder builder(opset);
    builder.input("x", kFloat, {"2", "3"});
    std::vector<std::string> inputs = {"x"};
    for (const char* name : {"scale", "bias", "mean", "var"}) {
      builder.weight<float>(name, kFloat, {3}, {1, 2, 3});
      inputs.push_back(name);
    }
    const std::vector<std::string> names = {"y", "a", "b", "c", "d"};
    proto::NodeProto& node =
        builder.node("BatchNormalization", inputs, {names.begin(), names.begin() + static_cast<int64_t>(outputs)});
    if (!attribute.empty()) builder.integer(node, attribute, attribute == "is_test" ? 1 : 0);
    builder.output("y", kFloat, {"2", "3"});
    return builder;
  };
  expect_refusal(normalisation(6, "", 1), "it works in training mode.");
  EXPECT_EQ(refusal_of(normalisation(6, "is_test", 1)), "(loaded)");
  expect_refusal(normalisation(8, "spatial", 1), "it has a mean for each element (spatial = 0)");
  expect_refusal(normalisation(13, "", 5), "not only its first output is used");
  EXPECT_EQ(refusal_of(normalisation(13, "", 1)), "(loaded)");
  ModelBuilder pool(13);
  pool.input("x", kFloat, {"1", "2", "3"});
  pool.output("y", kFloat, {"1", "2", "1"});
  pool.integer(pool.node("GlobalLpPool", {"x"}, {"y"}), "p", 3);
  expect_refusal(pool, "its p is 3; only 2 is translated");
  ModelBuilder remainder(13);
  remainder.input("x", kFloat, {"2"});
  remainder.output("y", kFloat, {"2"});
  remainder.node("Mod", {"x", "x"}, {"y"});
  expect_refusal(remainder, "floats need the attribute fmod to be 1");
}

TEST(Rules, EveryTranslatedOperatorHasASchema) {
  for (const SupportedOperator& row : supported_operators()) {
    const std::string_view domain = row.domain == "ai.onnx" ? std::string_view() : row.domain;
    const Schema* schema = find_schema(domain, row.name, row.until);
    ASSERT_NE(schema, nullptr) << row.name << ": it is not an operator of " << row.domain;
    EXPECT_NE(find_schema(domain, row.name, row.since), nullptr) << row.name << " of version " << row.since;
    for (const AttributeRule& rule : schema->attributes) {
      EXPECT_FALSE(rule.name.empty() || (!rule.values.empty() && rule.kind != Attribute::Kind::text &&
                                         rule.kind != Attribute::Kind::integer))
          << row.name;
    }
    for (const ParameterRule& rule : schema->inputs) EXPECT_NE(rule.types, 0u) << row.name << " " << rule.name;
  }
}

}  // namespace
}  // namespace tenon::onnx
