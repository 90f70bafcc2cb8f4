// Values that are not tensors of numbers: strings, sequences, optionals; sparse weights.
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

// Models that consist only of constants. The check computes them if they are small.
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

// A node of ai.onnx.ml.
proto::NodeProto& ml_node(ModelBuilder* builder, const std::string& op, const std::string& from,
                          const std::string& to) {
  proto::OperatorSetIdProto& import = builder->model().opset_import.emplace_back();
  import.domain = builder->keep("ai.onnx.ml");
  import.version = 1;
  ModelBuilder::mark(import, proto::OperatorSetIdProto::k_domain);
  ModelBuilder::mark(import, proto::OperatorSetIdProto::k_version);
  proto::NodeProto& node = builder->node(op, {from}, {to});
  node.domain = builder->keep("ai.onnx.ml");
  ModelBuilder::mark(node, proto::NodeProto::k_domain);
  return node;
}

// Makes the declared output `i` a sequence, and the declared input `i` a map from i64 to floats.
void make_sequence_output(ModelBuilder* builder, size_t i) {
  proto::TypeProto& type = *builder->graph().output[i].type;
  type.present = 0;
  type.sequence_type = std::make_unique<proto::TypeProto_Sequence>();
  ModelBuilder::mark(type, proto::TypeProto::k_sequence_type);
}
void make_map_input(ModelBuilder* builder, size_t i) {
  proto::TypeProto& type = *builder->graph().input[i].type;
  auto value = std::make_unique<proto::TypeProto>();
  value->tensor_type = std::move(type.tensor_type);
  ModelBuilder::mark(*value, proto::TypeProto::k_tensor_type);
  type.present = 0;
  type.map_type = std::make_unique<proto::TypeProto_Map>();
  type.map_type->key_type = kInt64;
  type.map_type->value_type = std::move(value);
  ModelBuilder::mark(type, proto::TypeProto::k_map_type);
  ModelBuilder::mark(*type.map_type, proto::TypeProto_Map::k_key_type);
  ModelBuilder::mark(*type.map_type, proto::TypeProto_Map::k_value_type);
}

TEST(Values, ZipMapGivesMapsAndTheirMatrix) {
  ModelBuilder builder(17);
  builder.input("x", kFloat, {"n", "3"});
  builder.output("z", kFloat, {"n"});
  builder.integers(ml_node(&builder, "ZipMap", "x", "z"), "classlabels_int64s", {7, 8, 9});
  make_sequence_output(&builder, 0);
  const Tensor x = Tensor::from<float>(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const Value maps = load_bytes(builder.bytes()).run_values({{"x", x}})[0];
  EXPECT_EQ(to_string(maps), "a sequence of 2");
  EXPECT_EQ(maps.matrix().to_host<float>(), x.to_host<float>());
  EXPECT_EQ(maps.keys().tensor().to_host<int64_t>(), (std::vector<int64_t>{7, 8, 9}));
  const Value& second = maps.elements()[1];
  EXPECT_EQ(second.kind(), Value::Kind::map);
  EXPECT_EQ(second.keys().tensor().to_host<int64_t>(), (std::vector<int64_t>{7, 8, 9}));
  EXPECT_EQ(contiguous(second.values().tensor()).to_host<float>(), (std::vector<float>{4, 5, 6}));
  EXPECT_THROW(Value::maps(maps.keys(), reshape(x, {3, 2})), Error);
  EXPECT_FALSE(Value::sequence({x}).matrix().defined());
}

TEST(Values, MapsBecomeRows) {
  const Value map = Value::map(Tensor::from<int64_t>(std::vector<int64_t>{5, 1, 3}, {3}),
                               Tensor::from<float>(std::vector<float>{50, 10, 30}, {3}));
  const auto row_of = [&](const std::string& op, auto set) {
    ModelBuilder builder(17);
    builder.input("x", kFloat, {"n"});
    builder.output("y", kFloat, {"1", "m"});
    set(&builder, ml_node(&builder, op, "x", "y"));
    make_map_input(&builder, 0);
    return load_bytes(builder.bytes()).run_values({{"x", map}})[0].tensor().to_host<float>();
  };
  EXPECT_EQ(row_of("DictVectorizer",
                   [](ModelBuilder* b, proto::NodeProto& node) {
                     b->integers(node, "int64_vocabulary", {1, 2, 5});
                   }),
            (std::vector<float>{10, 0, 50}));
  EXPECT_EQ(row_of("CastMap", [](ModelBuilder*, proto::NodeProto&) {}), (std::vector<float>{10, 30, 50}));
  EXPECT_EQ(row_of("CastMap",
                   [](ModelBuilder* b, proto::NodeProto& node) {
                     b->text(node, "map_form", "SPARSE");
                     b->integer(node, "max_map", 6);
                   }),
            (std::vector<float>{0, 10, 0, 30, 0, 50}));
  EXPECT_THROW(Value::map(map.keys(), Tensor::from<float>(std::vector<float>{1}, {1})), Error);
}

TEST(Values, StringsComeBackFromTheirOwnFormat) {
  const Value strings = Value::strings({2, 1}, {"a", "gr\xc3\xbc\xc3\x9f"});
  ValueInfo info;
  info.kind = Value::Kind::strings;
  const Value back = value_from_bytes(value_to_bytes(strings, "x"), info);
  EXPECT_EQ(back.dims(), strings.dims());
  EXPECT_EQ(back.strings(), strings.strings());
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
  builder.graph().sparse_initializer[0].dims = {2, 2};  // the index 2 is out of range
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
