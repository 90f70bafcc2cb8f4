// Models with dynamic dims: recorded once, run at many sizes.
#include <gtest/gtest.h>

#include <random>

#include "core/graph/signature.h"
#include "core/ops/ops.h"
#include "core/tensor/device.h"
#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx {
namespace {

constexpr int64_t kWidth = 8, kHeads = 2, kVocabulary = 11, kPositions = 40;

// An encoder of one layer as exporters write it: every shape is computed from Shape nodes.
class Encoder {
 public:
  Encoder() : builder_(17) {
    builder_.input("ids", kInt64, {"batch", "seq"});
    builder_.input("mask", kInt64, {"batch", "seq"});
    builder_.output("y", kFloat, {"batch", "seq", "8"});
    numbers();
    embed();
    attend();
    feed_forward();
  }

  std::string bytes() { return builder_.bytes(); }

 private:
  void random_weight(const std::string& name, const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    std::normal_distribution<float> normal(0.0f, 0.3f);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(random_);
    builder_.weight(name, kFloat, dims, values);
  }
  void list(const std::string& name, const std::vector<int64_t>& values) {
    builder_.weight<int64_t>(name, kInt64, {static_cast<int64_t>(values.size())}, values);
  }

  void numbers() {
    list("i0", {0});
    list("i1", {1});
    list("i2", {2});
    list("heads", {kHeads, kWidth / kHeads});
    list("width", {kWidth});
    builder_.weight<int64_t>("at0", kInt64, {}, {0});
    builder_.weight<int64_t>("at1", kInt64, {}, {1});
    builder_.weight<float>("one", kFloat, {}, {1.0f});
    builder_.weight<float>("half", kFloat, {}, {0.5f});
    builder_.weight<float>("root2", kFloat, {}, {1.41421356f});
    builder_.weight<float>("scale", kFloat, {}, {2.0f});
    builder_.weight<float>("low", kFloat, {}, {-10000.0f});
    random_weight("words", {kVocabulary, kWidth});
    random_weight("places", {kPositions, kWidth});
    random_weight("types", {2, kWidth});
    for (const char* name : {"q", "k", "v", "o"}) random_weight(std::string("w") + name, {kWidth, kWidth});
    for (const char* name : {"g", "c", "bq"}) random_weight(name, {kWidth});
    random_weight("up", {kWidth, 16});
    random_weight("down", {16, kWidth});
  }

  void embed() {
    builder_.node("Shape", {"ids"}, {"shape"});
    builder_.integer(builder_.node("Gather", {"shape", "at1"}, {"seq"}), "axis", 0);
    builder_.node("Unsqueeze", {"seq", "i0"}, {"seq1"});
    builder_.node("Slice", {"places", "i0", "seq1", "i0"}, {"place"});
    builder_.node("ConstantOfShape", {"shape"}, {"zeros"});
    builder_.integer(builder_.node("Cast", {"zeros"}, {"no_types"}), "to", kInt64);
    builder_.node("Gather", {"words", "ids"}, {"e0"});
    builder_.node("Gather", {"types", "no_types"}, {"e1"});
    builder_.node("Add", {"e0", "e1"}, {"e2"});
    builder_.node("Add", {"e2", "place"}, {"e3"});
    builder_.node("LayerNormalization", {"e3", "g", "c"}, {"e"});
    builder_.node("Unsqueeze", {"mask", "i1"}, {"mask1"});
    builder_.node("Unsqueeze", {"mask1", "i2"}, {"mask2"});
    builder_.integer(builder_.node("Cast", {"mask2"}, {"maskf"}), "to", kFloat);
    builder_.node("Sub", {"one", "maskf"}, {"masked"});
    builder_.node("Mul", {"masked", "low"}, {"bias"});
  }

  // [batch, seq, width] to [batch, heads, seq, width of a head].
  std::string split_heads(const std::string& x) {
    builder_.node("Shape", {x}, {x + "_shape"});
    builder_.integer(builder_.node("Gather", {x + "_shape", "i0"}, {x + "_b"}), "axis", 0);
    builder_.integer(builder_.node("Gather", {x + "_shape", "i1"}, {x + "_s"}), "axis", 0);
    builder_.integer(builder_.node("Concat", {x + "_b", x + "_s", "heads"}, {x + "_to"}), "axis", 0);
    builder_.node("Reshape", {x, x + "_to"}, {x + "_r"});
    builder_.integers(builder_.node("Transpose", {x + "_r"}, {x + "_h"}), "perm", {0, 2, 1, 3});
    return x + "_h";
  }

  void attend() {
    builder_.node("MatMul", {"e", "wq"}, {"q0"});
    builder_.node("Add", {"q0", "bq"}, {"q"});
    builder_.node("MatMul", {"e", "wk"}, {"k"});
    builder_.node("MatMul", {"e", "wv"}, {"v"});
    const std::string q = split_heads("q"), k = split_heads("k"), v = split_heads("v");
    builder_.integers(builder_.node("Transpose", {k}, {"kt"}), "perm", {0, 1, 3, 2});
    builder_.node("MatMul", {q, "kt"}, {"s0"});
    builder_.node("Div", {"s0", "scale"}, {"s1"});
    builder_.node("Add", {"s1", "bias"}, {"s2"});
    builder_.integer(builder_.node("Softmax", {"s2"}, {"p"}), "axis", -1);
    builder_.node("MatMul", {"p", v}, {"a0"});
    builder_.integers(builder_.node("Transpose", {"a0"}, {"a1"}), "perm", {0, 2, 1, 3});
    builder_.integer(builder_.node("Concat", {"q_b", "q_s", "width"}, {"back"}), "axis", 0);
    builder_.node("Reshape", {"a1", "back"}, {"a2"});
    builder_.node("MatMul", {"a2", "wo"}, {"a3"});
    builder_.node("Add", {"a3", "e"}, {"a4"});
    builder_.node("LayerNormalization", {"a4", "g", "c"}, {"a"});
  }

  void feed_forward() {
    builder_.node("MatMul", {"a", "up"}, {"f0"});
    builder_.node("Div", {"f0", "root2"}, {"f1"});
    builder_.node("Erf", {"f1"}, {"f2"});
    builder_.node("Add", {"f2", "one"}, {"f3"});
    builder_.node("Mul", {"f0", "f3"}, {"f4"});
    builder_.node("Mul", {"f4", "half"}, {"f5"});
    builder_.node("MatMul", {"f5", "down"}, {"f6"});
    builder_.node("Add", {"f6", "a"}, {"y"});
  }

  ModelBuilder builder_;
  std::mt19937 random_{5};
};

Inputs inputs_of(int64_t batch, int64_t seq) {
  std::mt19937 random(static_cast<uint32_t>(batch * 100 + seq));
  std::vector<int64_t> ids(static_cast<size_t>(batch * seq)), mask(ids.size());
  for (int64_t& id : ids) id = static_cast<int64_t>(random() % kVocabulary);
  for (int64_t& one : mask) one = random() % 4 == 0 ? 0 : 1;
  return {{"ids", Tensor::from<int64_t>(ids, {batch, seq})}, {"mask", Tensor::from<int64_t>(mask, {batch, seq})}};
}

Options exact() {
  Options options;
  options.passes = Passes::exact;
  return options;
}

TEST(Sizes, AnEncoderIsRecordedOnceFor200Sizes) {
  const Model model = load_bytes(Encoder().bytes(), exact());
  Options stepwise;
  stepwise.eager = true;
  const Model eager = load_bytes(Encoder().bytes(), stepwise);
  std::mt19937 random(3);
  uint64_t level = 0;
  for (int run = 0; run < 200; ++run) {
    const int64_t batch = 2 + static_cast<int64_t>(random() % 8), seq = 2 + static_cast<int64_t>(random() % 30);
    SCOPED_TRACE(fmt::format("{} x {}", batch, seq));
    const Inputs inputs = inputs_of(batch, seq);
    const Tensor y = model.run(inputs)[0];
    ASSERT_EQ(y.dims(), (Dims{batch, seq, kWidth}));
    ASSERT_EQ(y.to_host<float>(), eager.run(inputs)[0].to_host<float>());
    ASSERT_EQ(model.recorded(), 1u);
    const uint64_t bytes = model.device().memory_stats().live;
    if (run == 60) level = bytes;
    if (run > 60) {
      ASSERT_LE(bytes, level + level / 4 + 65536);
    }
  }
}

TEST(Sizes, PassesThatMoveBitsHoldForAllSizesToo) {
  const Model model = load_bytes(Encoder().bytes());
  const Model plain = load_bytes(Encoder().bytes(), exact());
  for (const auto& [batch, seq] : {std::pair(3, 7), {2, 30}, {9, 2}, {5, 16}, {4, 4}}) {
    const Inputs inputs = inputs_of(batch, seq);
    const std::vector<float> y = model.run(inputs)[0].to_host<float>(), wanted = plain.run(inputs)[0].to_host<float>();
    ASSERT_EQ(y.size(), wanted.size());
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], wanted[i], 2e-5f);
  }
  EXPECT_EQ(model.recorded(), 1u);
}

// The table of positions has 40 rows; the sum with the words uses one row for each word.
TEST(Sizes, AnEncoderIsBoundToNothingButItsTableOfPositions) {
  const Model model = load_bytes(Encoder().bytes(), exact());
  EXPECT_EQ(graph::guards(model.record(inputs_of(3, 7), true)), "1 < S0 (input)\n1 < S1 (input)\nS1 <= 40 (add)\n");
}

// Sizes of 1 broadcast, so they need a recording of their own.
TEST(Sizes, ABatchOfOneIsAnotherRecordingAndOneOfTwoServesAllOthers) {
  const Model model = load_bytes(Encoder().bytes(), exact());
  (void)model.run(inputs_of(1, 5));
  (void)model.run(inputs_of(1, 9));
  EXPECT_EQ(model.recorded(), 1u);
  (void)model.run(inputs_of(3, 9));
  (void)model.run(inputs_of(4, 2));
  EXPECT_EQ(model.recorded(), 2u);
}

TEST(Sizes, DimsOfOneNameAreOneSize) {
  const Model model = load_bytes(Encoder().bytes(), exact());
  Inputs inputs = inputs_of(2, 5);
  inputs["mask"] = inputs_of(2, 6)["mask"];
  try {
    (void)model.run(inputs);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status().message(),
              "Input 'mask' must be i64[batch, seq], but i64[2, 6] was given: 'seq' is 5 in input 'ids'.");
  }
}

// Exporters write -1 and "?" for unknown sizes. Each is a separate size.
TEST(Sizes, DimsWithoutANameAreAnySizes) {
  for (const std::vector<std::string>& dims :
       {std::vector<std::string>{"?", "?"}, {"-1", "-1"}, {"", ""}, {"*", "-1"}}) {
    ModelBuilder builder;
    builder.input("x", kFloat, dims);
    builder.output("y", kFloat, dims);
    builder.node("Relu", {"x"}, {"y"});
    const Model model = load_bytes(builder.bytes());
    EXPECT_EQ(to_string(model.inputs()[0]), "f32[?, ?]");
    for (const Dims& shape : {Dims{2, 3}, Dims{5, 5}, Dims{7, 2}})
      EXPECT_EQ(model.run({{"x", full(shape, Scalar(1.0), DType::f32)}})[0].dims(), shape);
  }
}

// The check of a model does not know the sizes. The sizes that it assumes decide nothing.
TEST(Sizes, AWindowMayBeLongerThanWhatTheCheckTakesForAnOpenSize) {
  ModelBuilder builder;
  builder.input("x", kFloat, {"batch", "1", "samples"});
  builder.output("y", kFloat, {"batch", "1", "windows"});
  builder.weight<float>("w", kFloat, {1, 1, 512}, std::vector<float>(512, 0.5f));
  builder.integers(builder.node("Conv", {"x", "w"}, {"y"}, "long"), "strides", {160});
  const Model model = load_bytes(builder.bytes());
  const Tensor y = model.run({{"x", full({2, 1, 832}, Scalar(2.0), DType::f32)}})[0];
  EXPECT_EQ(y.to_host<float>(), std::vector<float>(6, 512.0f));
  EXPECT_THROW((void)model.run({{"x", full({2, 1, 100}, Scalar(2.0), DType::f32)}}), Error);
}

TEST(Sizes, ARangeOfAnEmptyStepIsAnError) {
  ModelBuilder builder;
  builder.input("start", 6, {});
  builder.input("limit", 6, {});
  builder.input("delta", 6, {"0"});
  builder.output("output", 6, {"n"});
  builder.node("Range", {"start", "limit", "delta"}, {"output"}, "numbers");
  try {
    const Model model = load_bytes(builder.bytes());
    model.run({{"start", Tensor::from<int32_t>(std::vector<int32_t>{0}, {})},
               {"limit", Tensor::from<int32_t>(std::vector<int32_t>{4}, {})},
               {"delta", Tensor::empty({0}, DType::i32)}});
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("its input 2, 'delta', has the shape [0]; one element is expected"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tenon::onnx
