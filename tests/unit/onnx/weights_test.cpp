// Weights of a file: read when they are needed, and not kept in addition to the packed copies of kernels.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/graph/execute/executable.h"
#include "core/ops/ops.h"
#include "core/tensor/tensor.h"
#include "sdk/onnx/onnx.h"
#include "tests/unit/onnx/model_builder.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::onnx {
namespace {

constexpr int32_t kFloat = 1;
constexpr int64_t kWidth = 512, kRows = 1000;
constexpr uint64_t kMatrix = kWidth * kWidth * sizeof(float), kTable = kRows * kWidth * sizeof(float);

// y = relu(table[ids] * first) * second
std::string model_bytes() {
  ModelBuilder builder;
  builder.input("ids", 7, {"batch"});
  builder.output("y", kFloat, {"batch", "512"});
  builder.weight<float>("table", kFloat, {kRows, kWidth}, random_floats(kRows * kWidth, 1));
  builder.weight<float>("first", kFloat, {kWidth, kWidth}, random_floats(kWidth * kWidth, 2));
  builder.weight<float>("second", kFloat, {kWidth, kWidth}, random_floats(kWidth * kWidth, 3));
  builder.node("Gather", {"table", "ids"}, {"x"});
  builder.node("MatMul", {"x", "first"}, {"a"});
  builder.node("Relu", {"a"}, {"b"});
  builder.node("MatMul", {"b", "second"}, {"y"});
  return builder.bytes();
}

Inputs inputs(int64_t batch) {
  std::vector<int64_t> ids(static_cast<size_t>(batch));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 37 % kRows);
  return {{"ids", Tensor::from<int64_t>(ids, {batch})}};
}

std::vector<float> run(const Model& model, int64_t batch) { return model.run(inputs(batch)).at(0).to_host<float>(); }

class WeightsOfAFile : public ::testing::Test {
 protected:
  static uint64_t live() { return Device("cpu").memory_stats().live; }
  static uint64_t packed() { return Device("cpu").memory_stats().packed; }

  const ScratchFolder scratch_;
  const std::string bytes_ = model_bytes(), path_ = scratch_.write("model.onnx", bytes_);
};

TEST_F(WeightsOfAFile, ArePackedWithoutTheirOriginals) {
  const uint64_t before = live();
  {
    const Model model = load(path_);
    EXPECT_LT(live(), before + kTable / 4);
    const std::vector<float> wanted = run(load_bytes(bytes_), 16);
    EXPECT_EQ(run(model, 16), wanted);
    EXPECT_EQ(packed(), 2 * kMatrix);
    EXPECT_GE(live(), before + kTable + 2 * kMatrix);  // no kernel packs the table
    EXPECT_LT(live(), before + kTable + 2 * kMatrix + kMatrix / 2);
  }
  EXPECT_LE(live(), before);
}

TEST_F(WeightsOfAFile, ArePackedOnceForAllSizes) {
  const Model model = load(path_), reference = load_bytes(bytes_);
  run(model, 8);
  std::filesystem::resize_file(path_, 100);  // it is not read again
  for (const int64_t batch : {16, 9, 40, 8}) EXPECT_EQ(run(model, batch), run(reference, batch)) << batch;
  EXPECT_EQ(packed(), 4 * kMatrix);  // two models
}

TEST_F(WeightsOfAFile, ThatIsGoneOrReplacedAreThoseOfTheFileThatWasLoaded) {
  const Model model = load(path_), other = load(path_);
  const std::vector<float> wanted = run(load_bytes(bytes_), 16);
  std::filesystem::remove(path_);
  EXPECT_EQ(run(model, 16), wanted);
  scratch_.write("model.onnx", std::string(bytes_.size(), 'x'));
  EXPECT_EQ(run(other, 16), wanted);
}

TEST_F(WeightsOfAFile, ThatWasChangedAreAnErrorThatNamesIt) {
  const auto written = std::filesystem::last_write_time(path_);
  for (const bool shorter : {false, true}) {
    const Model model = load(path_);
    const uint64_t before = live();
    if (shorter) std::filesystem::resize_file(path_, 100);
    std::filesystem::last_write_time(path_, written + std::chrono::seconds(shorter ? 5 : 3));
    try {
      run(model, 16);
      ADD_FAILURE() << "the file has other bytes";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.code(), Code::invalid_argument) << text;
      EXPECT_NE(text.find(path_), std::string::npos) << text;
      const char* why = shorter ? "The file became shorter while it was read." : "The file was changed after";
      EXPECT_NE(text.find(why), std::string::npos) << text;
    }
    EXPECT_LE(live(), before);
    EXPECT_EQ(packed(), 0u);
  }
}

// y = x * w, of 512 columns; w in a file of its own.
TEST_F(WeightsOfAFile, ThatIsBesideTheModelAreReadWhenTheyArePacked) {
  ModelBuilder builder;
  builder.input("x", kFloat, {"16", "512"});
  builder.output("y", kFloat, {"16", "512"});
  const std::vector<float> floats = random_floats(kWidth * kWidth, 4);
  const std::string elements(reinterpret_cast<const char*>(floats.data()), kMatrix);
  const std::string data = scratch_.write("w.bin", elements);
  builder.external(builder.weight<float>("w", kFloat, {kWidth, kWidth}, {}), {{"location", "w.bin"}});
  builder.node("MatMul", {"x", "w"}, {"y"});
  const std::string path = scratch_.write("external.onnx", builder.bytes());
  const Tensor x = Tensor::from<float>(random_floats(16 * kWidth, 5), {16, kWidth});
  const uint64_t before = live();
  const Model model = load(path), stale = load(path);
  EXPECT_LT(live(), before + kMatrix / 2);
  const Tensor w = Tensor::from<float>(floats, {kWidth, kWidth});
  const std::vector<float> found = model.run({{"x", x}}).at(0).to_host<float>(), wanted = matmul(x, w).to_host<float>();
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 1e-4f) << i;
  EXPECT_EQ(packed(), kMatrix);
  std::filesystem::resize_file(data, 8);
  EXPECT_EQ(model.run({{"x", x}}).at(0).to_host<float>(), found);
  EXPECT_THROW(stale.run({{"x", x}}), Error);
}

TEST_F(WeightsOfAFile, ServeExactAndPackedProgramsBesideEachOther) {
  Options node_by_node;
  node_by_node.eager = true;
  const Model model = load(path_), eager = load_bytes(bytes_, node_by_node);
  const graph::Graph recorded = model.record(inputs(16));
  const std::vector<float> wanted = run(eager, 16);
  const uint64_t before = live();
  const TensorList ids = {inputs(16).at("ids")};
  const auto result = [&](const graph::Executable& program) { return graph::run(program, ids).at(0).to_host<float>(); };
  const graph::Executable fast = graph::prepare(recorded);
  const std::vector<float> bounded = result(fast);
  EXPECT_LT(live(), before + kTable + 3 * kMatrix);
  {
    const graph::Executable exact = graph::prepare(recorded, {.packed = false});
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(result(exact), wanted);
      EXPECT_EQ(result(fast), bounded);
    }
    EXPECT_GE(live(), before + kTable + 4 * kMatrix);  // the exact program needs the originals
  }
  EXPECT_EQ(result(fast), bounded);
}

TEST_F(WeightsOfAFile, ArePackedOnceByManyThreads) {
  for (int round = 0; round < 5; ++round) {
    const Model model = load(path_), reference = load_bytes(bytes_);
    std::vector<std::vector<float>> found(4);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < found.size(); ++i) {
      threads.emplace_back([&, i] { found[i] = run(model, 8 + static_cast<int64_t>(i % 2)); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(packed(), 2 * kMatrix);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], run(reference, 8 + static_cast<int64_t>(i % 2)));
  }
}

}  // namespace
}  // namespace tenon::onnx
