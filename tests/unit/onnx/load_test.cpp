// Refusals of load(), and their messages.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "core/ops/ops.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"
#include "tests/unit/onnx/model_builder.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::onnx {
namespace {

struct Refusal {
  Code code = Code::ok;
  std::string text;
  bool says(const std::string& part) const { return text.find(part) != std::string::npos; }
};

Refusal refusal_of(const std::string& bytes, const Options& options = {}) {
  try {
    load_bytes(bytes, options);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {Code::ok, "(loaded)"};
}

ModelBuilder with_node(const std::string& op, int64_t opset = 17) {
  ModelBuilder builder(opset);
  builder.input("x", kFloat, {"2", "3"});
  builder.output("y", kFloat, {"2", "3"});
  builder.node(op, {"x"}, {"y"}, "first");
  return builder;
}

TEST(Load, RefusesBytesThatAreNoModel) {
  EXPECT_EQ(refusal_of("").code, Code::invalid_argument);
  EXPECT_EQ(refusal_of("this is a text file, not a model").code, Code::invalid_argument);
  EXPECT_TRUE(refusal_of(std::string(1000, '\xff')).says("This is not an ONNX model, or it is damaged."));
}

TEST(Load, NamesEveryNodeThatCannotRunAtOnce) {
  ModelBuilder builder = with_node("Relu", 20);
  builder.input("bytes", kUint8, {"9"});
  builder.attribute(builder.node("ImageDecoder", {"bytes"}, {"a"}, "photo"), "pixel_format",
                    proto::AttributeProto::AttributeType_STRING);
  builder.node("Quux", {"y"}, {"b"}, "own");
  const Refusal refusal = refusal_of(builder.bytes());
  EXPECT_EQ(refusal.code, Code::unsupported);
  EXPECT_TRUE(refusal.says("for 2 reasons")) << refusal.text;
  EXPECT_TRUE(refusal.says("node 1 (photo): ImageDecoder (version 20) of u8: it decodes images")) << refusal.text;
  EXPECT_TRUE(refusal.says("node 2 (own): Quux (version 20) of f32: there is no translation")) << refusal.text;
}

TEST(Load, SaysWhatToDoWithAModelOfANewerVersion) {
  ModelBuilder builder(99);
  builder.input("x", kFloat, {"2"});
  builder.output("y", kFloat, {"2"});
  builder.node("Relu", {"x"}, {"y"});
  const Refusal refusal = refusal_of(builder.bytes());
  EXPECT_EQ(refusal.code, Code::unsupported);
  EXPECT_TRUE(refusal.says("needs opset version 99") && refusal.says("Export it with opset_version=") &&
              refusal.says("onnx.version_converter"))
      << refusal.text;
}

TEST(Load, NamesVersionTypesAndReason) {
  ModelBuilder builder;
  builder.input("x", kFloat, {"2", "3", "4", "4", "4", "4"});
  builder.output("y", kFloat, {"2", "3", "4", "4", "4", "4"});
  proto::NodeProto& node = builder.node("MaxPool", {"x"}, {"y"}, "pools");
  proto::AttributeProto& kernel = builder.attribute(node, "kernel_shape", proto::AttributeProto::AttributeType_INTS);
  kernel.ints = {1, 1, 1, 1};
  const Refusal refusal = refusal_of(builder.bytes());
  EXPECT_EQ(refusal.code, Code::unsupported);
  EXPECT_TRUE(refusal.says("node 0 (pools): MaxPool (version 17) of f32[2, 3, 4, 4, 4, 4]: it has 4 spatial axes"))
      << refusal.text;
}

TEST(Load, RefusesVersionsItDoesNotKnow) {
  ModelBuilder old(6);
  old.input("x", kFloat, {"2"});
  old.output("y", kFloat, {"2"});
  old.node("Add", {"x", "x"}, {"y"});
  EXPECT_TRUE(refusal_of(old.bytes()).says("it is translated for the opset versions 7 to "))
      << refusal_of(old.bytes()).text;
  ModelBuilder young(99);
  young.output("y", kFloat, {"2"});
  young.node("Relu", {"y"}, {"z"});
  EXPECT_NE(refusal_of(young.bytes()).code, Code::ok);
}

TEST(Load, RefusesTypesThatTenonDoesNotHave) {
  ModelBuilder builder;
  builder.input("x", kComplex64, {"2"});
  builder.output("y", kComplex64, {"2"});
  builder.node("Identity", {"x"}, {"y"});
  const Refusal refusal = refusal_of(builder.bytes());
  EXPECT_EQ(refusal.code, Code::unsupported);
  EXPECT_TRUE(refusal.says("input 'x' holds complex64, an element type that Tenon does not have.")) << refusal.text;
}

TEST(Load, RefusesGraphsWithoutAnOrder) {
  ModelBuilder cycle;
  cycle.output("a", kFloat, {"2"});
  cycle.node("Relu", {"b"}, {"a"}, "one");
  cycle.node("Relu", {"a"}, {"b"}, "two");
  EXPECT_EQ(refusal_of(cycle.bytes()).text,
            "The model is malformed: its nodes form a cycle: node 0 (one) reads node 1 (two) reads node 0 (one).");
  ModelBuilder open = with_node("Relu");
  open.node("Relu", {"z"}, {"w"}, "two");
  EXPECT_EQ(refusal_of(open.bytes()).text,
            "The model is malformed: node 1 (two) (Relu) reads 'z', which no node computes.");
  ModelBuilder twice = with_node("Relu");
  twice.node("Relu", {"x"}, {"y"}, "again");
  EXPECT_TRUE(refusal_of(twice.bytes()).says("the value 'y' is computed a second time, by node 1 (again)"));
  ModelBuilder lost = with_node("Relu");
  lost.output("nowhere", kFloat, {"2"});
  EXPECT_TRUE(refusal_of(lost.bytes()).says("no node computes the output 'nowhere'"));
}

// A chain v + 1 + 1 .., whose nodes are in reverse order in the file.
TEST(Load, SortsNodesThatAFileHasInAnyOrder) {
  constexpr int kCount = 50;
  ModelBuilder builder;
  builder.input("v0", kFloat, {"2"});
  builder.output(fmt::format("v{}", kCount), kFloat, {"2"});
  builder.weight<float>("one", kFloat, {}, {1});
  for (int i = kCount; i > 0; --i)
    builder.node("Add", {fmt::format("v{}", i - 1), "one"}, {fmt::format("v{}", i)}, fmt::format("step {}", i));
  std::vector<std::string> lines;
  loader::set_log_sink([&](loader::LogLevel, std::string_view, std::string_view line) { lines.emplace_back(line); });
  const Model model = load_bytes(builder.bytes());
  loader::set_log_sink({});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("not in an order in which they can run"), std::string::npos) << lines[0];
  const Tensor y = model.run({{"v0", Tensor::from<float>(std::vector<float>{0.5f, -3.0f}, {2})}})[0];
  EXPECT_EQ(y.to_host<float>(), (std::vector<float>{50.5f, 47.0f}));
}

// A body reads a value that a later node of the outer graph makes, and its own nodes are unordered.
TEST(Load, SortsByWhatGraphsOfNodesRead) {
  ModelBuilder builder;
  builder.input("c", kBool, {});
  builder.input("x", kFloat, {"2"});
  builder.output("y", kFloat, {"2"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    ModelBuilder body;
    body.node("Add", {"inner", "doubled"}, {"r"});
    body.node("Neg", {"doubled"}, {"inner"});
    if (std::string(branch) == "then_branch") body.graph().node[0].op_type = "Sub";
    body.output("r", kFloat, {"2"});
    if (builder.graph().node.empty()) builder.node("If", {"c"}, {"y"});
    builder.graph(builder.graph().node[0], branch, std::move(body));
  }
  builder.node("Add", {"x", "x"}, {"doubled"});
  const Model model = load_bytes(builder.bytes());
  for (const bool condition : {true, false}) {
    const Tensor y =
        model.run({{"c", full({}, Scalar(condition), DType::boolean)}, {"x", full({2}, Scalar(3.0), DType::f32)}})[0];
    EXPECT_EQ(y.to_host<float>(), std::vector<float>(2, condition ? -12.0f : 0.0f));
  }
}

TEST(Load, NamesTheFirstNodesOfALongCycle) {
  constexpr int kCount = 100000;  // a chain of calls would be too deep
  ModelBuilder builder;
  builder.output("v0", kFloat, {"2"});
  for (int i = 0; i < kCount; ++i)
    builder.node("Relu", {fmt::format("v{}", (i + 1) % kCount)}, {fmt::format("v{}", i)});
  const Refusal refusal = refusal_of(builder.bytes());
  EXPECT_TRUE(refusal.says("its nodes form a cycle: node 0 (Relu) reads node 1 (Relu) reads node 2 (Relu)"))
      << refusal.text;
  EXPECT_TRUE(refusal.says("and 99992 more nodes")) << refusal.text;
}

TEST(Load, RefusesWeightsThatLie) {
  ModelBuilder shorter = with_node("Relu");
  shorter.weight<float>("w", kFloat, {2, 3}, {1, 2, 3});
  EXPECT_EQ(refusal_of(shorter.bytes()).text,
            "Tensor 'w' of shape [2, 3] and type f32 needs 24 bytes, but the file has 12.");
  ModelBuilder huge = with_node("Relu");
  huge.weight<float>("w", kFloat, {int64_t{1} << 40, int64_t{1} << 40}, {1});
  EXPECT_TRUE(refusal_of(huge.bytes()).says("has the impossible shape"));
  ModelBuilder large = with_node("Relu");
  large.weight<float>("w", kFloat, {int64_t{1} << 40}, {1});
  EXPECT_TRUE(refusal_of(large.bytes()).says("but the file has 4"));
  ModelBuilder negative = with_node("Relu");
  negative.weight<float>("w", kFloat, {-1}, {1});
  EXPECT_TRUE(refusal_of(negative.bytes()).says("has the impossible shape"));
  ModelBuilder deep = with_node("Relu");
  deep.weight<float>("w", kFloat, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1});
  EXPECT_TRUE(refusal_of(deep.bytes()).says("has rank 9; at most 8 is possible"));
}

TEST(Load, RefusesNodesThatCannotWorkWhateverTheInputs) {
  ModelBuilder builder;
  builder.input("x", kFloat, {"4", "25"});
  builder.output("y", kFloat, {"4", "2"});
  builder.weight<float>("w", kFloat, {3, 2}, {1, 2, 3, 4, 5, 6});
  builder.node("MatMul", {"x", "w"}, {"y"}, "/encoder/MatMul");
  const Refusal refusal = refusal_of(builder.bytes());
  EXPECT_EQ(refusal.code, Code::invalid_argument);
  EXPECT_TRUE(refusal.says("while running node 0 (/encoder/MatMul) on " + Device::current().spelling()))
      << refusal.text;
  EXPECT_TRUE(refusal.says("25") && refusal.says("3")) << refusal.text;
}

TEST(Load, RefusesResultsOfTooHighRank) {
  ModelBuilder builder;
  builder.input("x", kFloat, {"2", "2", "2", "2", "2"});
  builder.input("places", kInt64, {"1", "1", "1", "1", "1", "1"});
  builder.output("y", kFloat, {"1"});
  builder.node("GatherND", {"x", "places"}, {"y"}, "far");
  const Refusal refusal = refusal_of(builder.bytes());
  EXPECT_EQ(refusal.code, Code::invalid_argument);
  EXPECT_TRUE(refusal.says("the result would have rank 9")) << refusal.text;
}

TEST(Load, RefusesWindowsThatWouldOverflow) {
  const auto refused = [](const char* attribute, const std::vector<int64_t>& values) {
    ModelBuilder builder;
    builder.input("x", kFloat, {"1", "1", "4", "4"});
    builder.output("y", kFloat, {"1", "1", "h", "w"});
    builder.weight<float>("w", kFloat, {1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
    proto::NodeProto& node = builder.node("ConvTranspose", {"x", "w"}, {"y"}, "up");
    builder.integers(node, "output_shape", {9, 9});
    if (attribute != std::string("output_shape")) {
      builder.integers(node, attribute, values);
    } else {
      node.attribute.back().ints = values;
    }
    return refusal_of(builder.bytes());
  };
  const int64_t largest = std::numeric_limits<int64_t>::max();
  const Refusal padding = refused("output_padding", {1, largest});
  EXPECT_EQ(padding.code, Code::invalid_argument);
  EXPECT_TRUE(padding.says("its attribute 'output_padding' is [1, 9223372036854775807]; numbers from 0 to 2147483647"))
      << padding.text;
  EXPECT_TRUE(refused("output_shape", {largest, 9}).says("its attribute 'output_shape' is [9223372036854775807, 9]"));
  EXPECT_TRUE(refused("output_shape", {-largest, 9}).says("numbers from 0 to 2147483647 are expected"));
  EXPECT_TRUE(refused("strides", {1, largest}).says("numbers from 1 to 2147483647 are expected"));
  EXPECT_TRUE(refused("pads", {0, 0, 0, largest}).says("its attribute 'pads' is [0, 0, 0, 9223372036854775807]"));
}

TEST(Load, RefusesAttributesOfTheWrongKind) {
  ModelBuilder builder = with_node("Softmax");
  builder.integers(builder.graph().node[0], "axis", {1});
  EXPECT_TRUE(refusal_of(builder.bytes()).says("attribute 'axis' must be an int, not a list of ints"))
      << refusal_of(builder.bytes()).text;
}

class LoadExternal : public testing::Test {
 protected:
  void SetUp() override {
    const float values[4] = {1, 2, 3, 4};
    std::ofstream(folder_ + "/w.bin", std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof values);
  }

  ModelBuilder with_external(const std::vector<std::pair<std::string, std::string>>& entries) {
    ModelBuilder builder;
    builder.input("x", kFloat, {"2"});
    builder.output("y", kFloat, {"2"});
    builder.external(builder.weight<float>("w", kFloat, {2}, {0, 0}), entries);
    builder.node("Add", {"x", "w"}, {"y"});
    return builder;
  }

  const ScratchFolder scratch_;
  const std::string& folder_ = scratch_.path();
};

TEST_F(LoadExternal, ReadsWeightsFromAFileBesideTheModel) {
  std::ofstream(folder_ + "/m.onnx", std::ios::binary)
      << with_external({{"location", "w.bin"}, {"offset", "8"}, {"length", "8"}}).bytes();
  const Model model = load(folder_ + "/m.onnx");
  const std::vector<float> x = {10, 20};
  EXPECT_EQ(model.run({{"x", Tensor::from<float>(x, {2})}})[0].to_host<float>(), (std::vector<float>{13, 24}));
}

TEST_F(LoadExternal, RefusesRangesAndPlacesThatEscape) {
  Options options;
  options.external_data_root = folder_;
  const auto says = [&](const std::vector<std::pair<std::string, std::string>>& entries, const std::string& part) {
    const Refusal refusal = refusal_of(with_external(entries).bytes(), options);
    EXPECT_TRUE(refusal.code == Code::invalid_argument && refusal.says(part)) << refusal.text;
  };
  says({{"location", "w.bin"}, {"offset", "12"}}, "needs 8 bytes at offset 12 of 'w.bin', which has 16 bytes");
  says({{"location", "w.bin"}, {"offset", "18446744073709551615"}}, "at offset 18446744073709551615");
  says({{"location", "w.bin"}, {"offset", "-8"}}, "offset, '-8', is not a number of bytes");
  says({{"location", "w.bin"}, {"length", "4"}}, "needs 8 bytes, but its external data has length 4");
  says({{"location", "../../etc/passwd"}}, "names a parent folder");
  says({{"location", "/etc/passwd"}}, "is an absolute path");
  says({{"location", "w.bin"}, {"basename", "x"}}, "unknown key 'basename'");
  EXPECT_TRUE(refusal_of(with_external({{"location", "w.bin"}}).bytes()).says("no folder for external data was given"));
}

}  // namespace
}  // namespace tenon::onnx
