// Values that are no tensors of numbers: strings, sequences, optionals; sparse weights.
#include <gtest/gtest.h>

#include "core/ops/ops.h"
#include "sdk/onnx/onnx.h"
#include "sdk/onnx/text/text.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx {
namespace {

using Strings = std::vector<std::string>;

TEST(Values, StringsGoThroughOperatorsThatMoveElements) {
  ModelBuilder builder(20);
  builder.input("x", kString, {"2", "2"});
  builder.output("y", kString, {"4"});
  builder.output("same", kBool, {"2", "2"});
  builder.weight<int64_t>("shape", kInt64, {1}, {4});
  builder.node("Transpose", {"x"}, {"t"});
  builder.node("Reshape", {"t", "shape"}, {"y"});
  builder.node("Equal", {"x", "t"}, {"same"});
  const ValueList results =
      load_bytes(builder.bytes()).run_values({{"x", Value::strings({2, 2}, {"b", "", "zz", "b"})}});
  EXPECT_EQ(results[0].strings(), (Strings{"b", "zz", "", "b"}));
  EXPECT_EQ(results[1].tensor().to_host<uint8_t>(), (std::vector<uint8_t>{1, 0, 0, 1}));
}

TEST(Values, AModelWithStringsRunsByValues) {
  ModelBuilder builder(20);
  builder.input("x", kString, {"n"});
  builder.output("y", kString, {"n"});
  proto::NodeProto& node = builder.node("StringNormalizer", {"x"}, {"y"});
  builder.text(node, "case_change_action", "UPPER");
  const Model model = load_bytes(builder.bytes());
  EXPECT_EQ(model.run_values({{"x", Value::strings({2}, {"gr\xc3\xbc\xc3\x9f", "a"})}})[0].strings(),
            (Strings{"GR\xc3\x9cSS", "A"}));
  EXPECT_THROW(model.run({}), Error);
  EXPECT_THROW(model.run_values({{"x", Tensor::from<float>(std::vector<float>{1}, {1})}}), Error);
  EXPECT_EQ(to_string(model.inputs()[0]), "string[n]");
}

// Models of constants alone, which the check computes if they are small.
TEST(Values, WorkOnTheHostHasABound) {
  const auto pool = [](int64_t side, int64_t ratio) {
    ModelBuilder builder(20);
    builder.output("y", kFloat, {"n", "c", "h", "w"});
    builder.weight<float>("x", kFloat, {1, 1, 1, 1}, {1});
    builder.weight<float>("r", kFloat, {1, 4}, {0, 0, 1e8F, 1e8F});
    builder.weight<int64_t>("b", kInt64, {1}, {0});
    proto::NodeProto& node = builder.node("RoiAlign", {"x", "r", "b"}, {"y"});
    builder.integer(node, "output_height", side);
    builder.integer(node, "output_width", side);
    builder.integer(node, "sampling_ratio", ratio);
    return load_bytes(builder.bytes());
  };
  EXPECT_EQ(pool(2, 1).run({})[0].dims(), (Dims{1, 1, 2, 2}));
  EXPECT_EQ(pool(1024, 4).run({})[0].dims(), (Dims{1, 1, 1024, 1024})) << "too much for the check, and not for a run";
  try {
    pool(4096, 4096).run({});
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_NE(std::string(error.what()).find("asks for 2.81e+14 steps and a result of 6.71e+07 bytes"),
              std::string::npos)
        << error.what();
  }

  ModelBuilder builder(20);
  builder.input("x", kString, {"n"});
  builder.output("y", kString, {"n", "m"});
  builder.output("z", kInt64, {"n"});
  builder.text(builder.node("StringSplit", {"x"}, {"y", "z"}), "delimiter", ",");
  const Model split = load_bytes(builder.bytes());
  const ValueList parts = split.run_values({{"x", Value::strings({2}, {"a,b", "c"})}});
  EXPECT_EQ(parts[0].strings(), (Strings{"a", "b", "c", ""}));
  EXPECT_EQ(parts[1].tensor().to_host<int64_t>(), (std::vector<int64_t>{2, 1}));
  Strings rows(20'001, "a");
  rows[0] = std::string(20'000, ',');
  EXPECT_THROW(split.run_values({{"x", Value::strings({20'001}, rows)}}), Error);
}

TEST(Values, SequencesLieInsideOfRecordedModels) {
  ModelBuilder builder(17);
  builder.input("x", kFloat, {"4"});
  builder.output("y", kFloat, {"4"});
  builder.weight<int64_t>("two", kInt64, {}, {2});
  builder.weight<int64_t>("last", kInt64, {}, {-1});
  builder.weight<int64_t>("front", kInt64, {}, {0});
  builder.node("SplitToSequence", {"x", "two"}, {"parts"});
  builder.node("SequenceAt", {"parts", "last"}, {"tail"});
  builder.node("SequenceErase", {"parts", "last"}, {"rest"});
  builder.node("SequenceInsert", {"rest", "tail", "front"}, {"turned"});
  builder.integer(builder.node("ConcatFromSequence", {"turned"}, {"y"}), "axis", 0);
  const Model model = load_bytes(builder.bytes());
  EXPECT_EQ(model.run({{"x", Tensor::from<float>(std::vector<float>{1, 2, 3, 4}, {4})}})[0].to_host<float>(),
            (std::vector<float>{3, 4, 1, 2}));
  EXPECT_EQ(model.recorded(), 1u);
}

TEST(Values, SparseWeightsGetTheirZeros) {
  ModelBuilder builder(17);
  builder.input("x", kFloat, {"2", "3"});
  builder.output("y", kFloat, {"2", "3"});
  ModelBuilder data(17);
  data.weight<float>("w", kFloat, {2}, {5.0f, -1.0f});
  data.weight<int64_t>("", kInt64, {2, 2}, {0, 2, 1, 0});
  const auto sparse = [&](std::vector<int64_t> dims) {
    proto::SparseTensorProto& tensor = builder.graph().sparse_initializer.emplace_back();
    tensor.values = std::make_unique<proto::TensorProto>(std::move(data.graph().initializer[0]));
    tensor.indices = std::make_unique<proto::TensorProto>(std::move(data.graph().initializer[1]));
    tensor.dims = std::move(dims);
    for (const auto field : {proto::SparseTensorProto::k_values, proto::SparseTensorProto::k_indices})
      ModelBuilder::mark(tensor, field);
  };
  sparse({2, 3});
  builder.node("Add", {"x", "w"}, {"y"});
  const Model model = load_bytes(builder.bytes());
  EXPECT_EQ(model.run({{"x", full({2, 3}, Scalar(1.0), DType::f32)}})[0].to_host<float>(),
            (std::vector<float>{1, 1, 6, 0, 1, 1}));
  builder.graph().sparse_initializer[0].dims = {2, 2};  // the index 2 is outside
  EXPECT_THROW(load_bytes(builder.bytes()), Error);
}

TEST(Text, NumbersAreReadAndWritten) {
  EXPECT_EQ(text::to_number(" -1.5e3 "), -1500.0);
  EXPECT_EQ(text::to_number("-INF"), -std::numeric_limits<double>::infinity());
  EXPECT_FALSE(text::to_number("1.5x").has_value());
  EXPECT_FALSE(text::to_number("").has_value());
  EXPECT_EQ(text::to_integer("9223372036854775807"), INT64_MAX);
  EXPECT_FALSE(text::to_integer("9223372036854775808").has_value());
  EXPECT_EQ(text::to_text(0.1f, true), "0.1");
}

TEST(Text, PatternsMatchTheWholeText) {
  EXPECT_TRUE(text::Pattern("a+b").matches("aab"));
  EXPECT_FALSE(text::Pattern("a+b").matches("aabc"));
  EXPECT_THROW(text::Pattern("a("), Error);
}

TEST(Text, SplitsAtDelimitersAndAtSpace) {
  EXPECT_EQ(text::split("a,b,,c", ",", std::nullopt), (Strings{"a", "b", "", "c"}));
  EXPECT_EQ(text::split("a,b,c", ",", 1), (Strings{"a", "b,c"}));
  EXPECT_EQ(text::split("  a  b ", "", std::nullopt), (Strings{"a", "b"}));
  EXPECT_EQ(text::split("", ",", std::nullopt), Strings{});
}

}  // namespace
}  // namespace tenon::onnx
