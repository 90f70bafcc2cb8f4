// Models from files: the elements of large weights are read directly to their destination, and damaged files give the
// same errors as their bytes.
#include "sdk/onnx/file/model_file.h"

#include <gtest/gtest.h>

#include <random>

#include "core/tensor/tensor.h"
#include "sdk/onnx/onnx.h"
#include "tests/unit/onnx/model_builder.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::onnx {
namespace {

constexpr int32_t kFloat = 1;

// y = (x * large + small) * large2; the large weights have 80,000 and 65,536 bytes.
std::string model_bytes() {
  ModelBuilder builder;
  builder.input("x", kFloat, {"20000"});
  builder.output("y", kFloat, {"16384"});
  builder.weight<float>("large", kFloat, {20000}, random_floats(20000, 1));
  builder.weight<float>("small", kFloat, {1}, {0.5f});
  builder.weight<float>("large2", kFloat, {16384}, random_floats(16384, 2));
  builder.weight<int64_t>("begin", 7, {1}, {0});
  builder.weight<int64_t>("end", 7, {1}, {16384});
  builder.node("Mul", {"x", "large"}, {"a"});
  builder.node("Add", {"a", "small"}, {"b"});
  builder.node("Slice", {"b", "begin", "end"}, {"c"});
  builder.node("Mul", {"c", "large2"}, {"y"});
  return builder.bytes();
}

// The result of a model, or its error without the path.
std::string outcome(const std::function<Model()>& open) {
  try {
    const Model model = open();
    const Tensor x = Tensor::from<float>(random_floats(20000, 3), {20000});
    const std::vector<float> y = model.run({{model.inputs().at(0).name, x}}).at(0).to_host<float>();
    return {reinterpret_cast<const char*>(y.data()), y.size() * sizeof(float)};
  } catch (const Error& error) {
    const std::string text = error.what();
    return text.substr(0, text.find("\n  while loading"));
  }
}

TEST(ModelFiles, LeaveOutTheElementsOfLargeWeights) {
  const ScratchFolder scratch;
  const std::string bytes = model_bytes(), path = scratch.write("model.onnx", bytes);
  const ModelFile file = value_or_throw(ModelFile::open(path, 1 << 20));
  ASSERT_EQ(file.bytes().size(), bytes.size());
  size_t zeros = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (file.bytes()[i] == bytes[i]) continue;
    ASSERT_EQ(file.bytes()[i], 0) << i;
    ++zeros;
  }
  EXPECT_GT(zeros, 140'000u);
  std::string again(bytes.size(), 'x');
  for (size_t at = 0; at < bytes.size(); at += 1000) {
    const size_t count = std::min<size_t>(1000, bytes.size() - at);
    ASSERT_TRUE(file.read(file.bytes().substr(at, count), again.data() + at).ok());
  }
  EXPECT_EQ(again, bytes);
}

TEST(ModelFiles, GiveWhatTheirBytesGive) {
  const ScratchFolder scratch;
  const std::string bytes = model_bytes(), path = scratch.write("model.onnx", bytes);
  const std::string wanted = outcome([&] { return load_bytes(bytes); });
  ASSERT_EQ(wanted.size(), 16384 * sizeof(float));
  EXPECT_EQ(outcome([&] { return load(path); }), wanted);
}

TEST(ModelFiles, DamagedGiveTheErrorsOfTheirBytes) {
  const ScratchFolder scratch;
  const std::string bytes = model_bytes();
  std::mt19937 random(7);
  for (int i = 0; i < 400; ++i) {
    std::string damaged = bytes;
    if (i % 4 == 0) damaged.resize(random() % damaged.size());
    for (uint32_t change = random() % 3; change-- > 0 && !damaged.empty();) {
      // Most bytes are elements of weights; other parts are near the ends and between the weights.
      const size_t near[] = {random() % 200, 80'000 + random() % 300, damaged.size() - 1 - random() % 300};
      damaged[near[random() % 3] % damaged.size()] = static_cast<char>(random());
    }
    const std::string path = scratch.write("damaged.onnx", damaged);
    ASSERT_EQ(outcome([&] { return load(path); }), outcome([&] { return load_bytes(damaged); })) << "damage " << i;
  }
}

TEST(ModelFiles, ThatAreNoFilesAreErrors) {
  const ScratchFolder scratch;
  EXPECT_EQ(ModelFile::open(scratch.path() + "/none", 10).status().code(), Code::not_found);
  EXPECT_NE(ModelFile::open(scratch.path(), 10).status().message().find("is not a regular file"), std::string::npos);
  const std::string path = scratch.write("model.onnx", "12345");
  EXPECT_NE(ModelFile::open(path, 4).status().message().find("has 5 bytes; at most 4 are read"), std::string::npos);
  EXPECT_EQ(value_or_throw(ModelFile::open(scratch.write("empty", ""), 4)).bytes(), "");
}

}  // namespace
}  // namespace tenon::onnx
