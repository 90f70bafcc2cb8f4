// Bad data that a device detects while a model runs: the error names the node and its shapes, equally on every device.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/tensor/device.h"
#include "loader/loader.h"
#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"
#include "tests/fakes/async/control.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx {
namespace {

// The device that is compared with the cpu: the asynchronous fake, or the device in FAULT_TEST_DEVICE.
Device device() {
  static const Device one = [] {
    if (const char* named = std::getenv("FAULT_TEST_DEVICE")) return Device(named);
    fakes::async_control().memory = uint64_t{64} << 20;
    loader::register_provider("async", fakes::async_query);
    return Device("async:0");
  }();
  return one;
}

// The fake with whole graphs, which takes all nodes in one graph.
Device graph_device() {
  static const Device one = [] {
    fakes::AsyncControl& control = fakes::async_control();
    control.memory = uint64_t{64} << 20;
    control.reference = control.graphs = true;
    control.graph_seed = 0;
    loader::register_provider("graphs", fakes::async_query);
    const Device opened("graphs:0");
    control.reference = control.graphs = false;
    return opened;
  }();
  return one;
}

// A model of two nodes whose second node receives bad data, and the text of its error.
struct BadModel {
  const char* op;
  int32_t type;
  std::vector<std::string> dims_i, dims_j;
  Inputs inputs;
  std::vector<const char*> says;
};

// Row 9 of the 3 rows that the first node returns.
BadModel gathers() {
  const std::vector<float> x(20, 1.5f);
  const std::vector<int64_t> i = {0, 4, -1};
  const std::vector<int64_t> j = {2, 9};
  return {
      "Gather",
      kFloat,
      {"k"},
      {"m"},
      {{"x", Tensor::from<float>(x, {5, 4})},
       {"i", Tensor::from<int64_t>(i, {3})},
       {"j", Tensor::from<int64_t>(j, {2})}},
      {"index 9 is out of range for an axis of length 3 (argument 'index').",
       "while running gather_slices(f32 [3, 4], i64 [2]) on DEVICE", "while running node 1 (second/Gather) on DEVICE"}};
}

BadModel divisions() {
  const std::vector<int32_t> x(20, 7);
  std::vector<int32_t> j(20, 2);
  j[13] = 0;
  const auto tensor = [](const std::vector<int32_t>& values) { return Tensor::from<int32_t>(values, {5, 4}); };
  return {"Div",
          kInt32,
          {"n", "4"},
          {"n", "4"},
          {{"x", tensor(x)}, {"i", tensor(x)}, {"j", tensor(j)}},
          {"integer division by zero (argument 'other').", "(i32 [5, 4], i32 [5, 4]) on DEVICE",
           "while running node 1 (second/Div) on DEVICE"}};
}

// The fake can gather but not divide integers; a real device is the other way round.
BadModel bad_model() { return std::getenv("FAULT_TEST_DEVICE") == nullptr ? gathers() : divisions(); }

Model load_on(Device on, bool eager) {
  const BadModel bad = bad_model();
  const int32_t second = bad.type == kFloat ? kInt64 : bad.type;
  ModelBuilder builder(14);
  builder.input("x", bad.type, {"n", "4"});
  builder.input("i", second, bad.dims_i);
  builder.input("j", second, bad.dims_j);
  builder.output("y", bad.type, {"o", "4"});
  builder.node(bad.op, {"x", "i"}, {"between"}, fmt::format("first/{}", bad.op));
  builder.node(bad.op, {"between", "j"}, {"y"}, fmt::format("second/{}", bad.op));
  Options options;
  options.device = on;
  options.eager = eager;
  return load_bytes(builder.bytes(), options);
}

// The error of the results of `run`, with "DEVICE" for the spelling of the device.
template <class Run>
std::string error_on(Device on, const Run& run) {
  std::string text = "no error";
  try {
    static_cast<void>(run()[0].wait());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument) << error.what();
    text = error.what();
  }
  for (size_t at = 0; (at = text.find(on.spelling())) != std::string::npos;) {
    text.replace(at, on.spelling().size(), "DEVICE");
  }
  return text;
}

TEST(FaultOfAModel, HasTheTextOfTheCpuOnAnAsynchronousDevice) {
  const BadModel bad = bad_model();
  for (const bool eager : {false, true}) {
    const Device cpu("cpu:0");
    const Model there = load_on(device(), eager);
    const std::string wanted = error_on(cpu, [&] { return load_on(cpu, eager).run(bad.inputs); });
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(error_on(device(), [&] { return there.run(bad.inputs); }), wanted) << (eager ? "eager" : "recorded");
    }
    for (const char* part : bad.says) EXPECT_NE(wanted.find(part), std::string::npos) << wanted;
    EXPECT_EQ(wanted.find("second/"), wanted.rfind("second/")) << wanted;
  }
}

TEST(FaultOfAModel, HasTheTextOfTheCpuInsideAWholeGraph) {
  if (std::getenv("FAULT_TEST_DEVICE") != nullptr) GTEST_SKIP() << "only the fake takes whole graphs";
  const BadModel bad = bad_model();
  const Device cpu("cpu:0");
  const std::string wanted = error_on(cpu, [&] { return load_on(cpu, false).run(bad.inputs); });
  const Model there = load_on(graph_device(), false);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(error_on(graph_device(), [&] { return there.run(bad.inputs); }), wanted);
  }
  std::vector<NodeExecution> executions;
  EXPECT_THROW(there.run(bad.inputs, &executions)[0].wait(), Error);
  ASSERT_EQ(executions.size(), 1u);
  EXPECT_EQ(executions[0].op, "graph of 2 nodes");
  EXPECT_EQ(executions[0].node, -1);
  EXPECT_EQ(executions[0].node_name, "the graph of 2 nodes, node 0 (first/Gather) to node 1 (second/Gather)");
}

TEST(FaultOfAModel, NamesItsNodeAfterTheModelIsGone) {
  if (std::getenv("FAULT_TEST_DEVICE") != nullptr) GTEST_SKIP() << "only the fake can be held";
  fakes::async_control().hold = true;
  const TensorList results = load_on(device(), false).run(bad_model().inputs);
  for (int i = 0; i < 3; ++i) load_on(device(), false);  // other models are loaded and unloaded in the meantime
  fakes::async_control().hold = false;
  EXPECT_NE(error_on(device(), [&] { return results; }).find("while running node 1 (second/Gather) on DEVICE"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::onnx
