// Records a program, runs it, and compares it with the same code run eagerly.
#include "core/graph/execute/executable.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <thread>

#include "core/graph/recorder.h"
#include "core/ops/ops.h"

namespace tenon::graph {
namespace {

using Program = std::function<TensorList(const TensorList&)>;

Tensor random_tensor(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(0.5f, 2.0f);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (float& value : data) value = values(random);
  return Tensor::from<float>(data, dims);
}

Executable record(const TensorList& inputs, const Program& code, std::vector<std::string> labels = {}) {
  Recorder recorder(Device::current());
  InterpreterScope scope(recorder);
  TensorList values;
  for (const Tensor& input : inputs) values.push_back(recorder.input(input.dtype(), input.dims()));
  for (std::string& label : labels) recorder.label(std::move(label));
  const TensorList outputs = code(values);
  return prepare(recorder.finish(outputs), {.whole_graphs = false});
}

void expect_same(const TensorList& inputs, const Program& code) {
  const TensorList expected = code(inputs);
  const Executable graph = record(inputs, code);
  for (int run_number = 0; run_number < 2; ++run_number) {
    const TensorList results = run(graph, inputs);
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].dims(), expected[i].dims());
      EXPECT_EQ(results[i].to_host<float>(), expected[i].to_host<float>());
    }
  }
}

TEST(Graph, RunsAsTheCodeItRecorded) {
  expect_same({random_tensor({3, 4}, 1), random_tensor({4}, 2)}, [](const TensorList& in) -> TensorList {
    return {mul(relu(sub(in[0], in[1])), Scalar(3.0)), exp(neg(in[1]))};
  });
}

TEST(Graph, RunsViewsAsTheyWereRecorded) {
  expect_same({random_tensor({4, 6}, 3)}, [](const TensorList& in) -> TensorList {
    const Tensor turned = permute(in[0], {1, 0});
    const Tensor part = slice(turned, 0, 1, 5, 2);
    return {add(reshape(part, {8}), Scalar(1.0)), relu(expand(select(in[0], 0, 2), {3, 6}))};
  });
}

TEST(Graph, MakesStridedInputsDenseFirst) {
  const Tensor base = random_tensor({4, 6}, 4);
  const Tensor turned = permute(base, {1, 0});
  const Executable graph =
      record({contiguous(turned)}, [](const TensorList& in) -> TensorList { return {reshape(relu(in[0]), {24})}; });
  EXPECT_EQ(run(graph, std::vector<Tensor>{turned})[0].to_host<float>(), reshape(relu(turned), {24}).to_host<float>());
}

TEST(Graph, ComputesKnownValuesWhileRecording) {
  const Tensor x = random_tensor({5}, 5), weight = random_tensor({5}, 6);
  const Executable graph =
      record({x}, [&](const TensorList& in) -> TensorList { return {mul(in[0], exp(square(weight)))}; });
  EXPECT_EQ(graph.steps.size(), 1u);
  EXPECT_EQ(run(graph, std::vector<Tensor>{x})[0].to_host<float>(), mul(x, exp(square(weight))).to_host<float>());
}

// A large result is kept only if it replaces values of more bytes.
TEST(Graph, ComputesALargeKnownValueIfItHasNoMoreElementsThanItsInputs) {
  const Tensor x = random_tensor({1, 100000}, 16), large = random_tensor({2, 100000}, 17);
  const auto steps = [&](const std::function<Tensor()>& known) {
    return record({x}, [&](const TensorList& in) -> TensorList { return {mul(in[0], known())}; }).steps.size();
  };
  EXPECT_EQ(steps([&] { return sum(large, {0}, true); }), 1u);
  EXPECT_EQ(steps([&] { return add(x, sum(large, {0}, true)); }), 1u) << "two of 100,000 make one";
  const Tensor column = random_tensor({3, 1}, 18);
  EXPECT_EQ(steps([&] { return add(x, column); }), 2u) << "100,003 make 300,000";
}

TEST(Graph, KeepsLargeFactoriesAsSteps) {
  const Tensor x = random_tensor({200, 200}, 7);
  const Executable graph = record({x}, [](const TensorList& in) -> TensorList {
    return {add(in[0], full({200, 200}, Scalar(2.0), DType::f32))};
  });
  for (const Slot& value : graph.values) EXPECT_FALSE(value.constant.defined() && value.constant.elements() > 1024);
  EXPECT_EQ(run(graph, std::vector<Tensor>{x})[0].to_host<float>(), add(x, Scalar(2.0)).to_host<float>());
}

TEST(Graph, LeavesOutStepsNobodyNeeds) {
  const Tensor x = random_tensor({5}, 8);
  const Executable graph = record({x}, [](const TensorList& in) -> TensorList {
    exp(exp(in[0]));
    return {neg(in[0])};
  });
  EXPECT_EQ(graph.steps.size(), 1u);
}

TEST(Graph, DropsEveryValueOnceAfterItsLastUse) {
  const Tensor x = random_tensor({5}, 9);
  const Executable graph = record({x}, [](const TensorList& in) -> TensorList {
    const Tensor a = exp(in[0]), b = neg(a);
    return {add(a, b)};
  });
  ASSERT_EQ(graph.steps.size(), 3u);
  EXPECT_EQ(graph.steps[0].drops, graph.inputs);
  EXPECT_TRUE(graph.steps[1].drops.empty());
  EXPECT_EQ(graph.steps[2].drops.size(), 2u);
}

TEST(Graph, ValuesHaveNoDataWhileRecorded) {
  Recorder recorder(Device::current());
  InterpreterScope scope(recorder);
  const Tensor value = recorder.input(DType::f32, {2});
  EXPECT_FALSE(recorder.host_value_known(value));
  EXPECT_THROW(value.to_host<float>(), Error);
  EXPECT_THROW(relu(value).to_host<float>(), Error);
}

std::string refusal_of(const std::function<void()>& code) {
  try {
    code();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  return "";
}

// True if the parts occur in `text` in this order.
bool in_order(const std::string& text, const std::vector<std::string>& parts) {
  size_t at = 0;
  for (const std::string& part : parts) {
    at = text.find(part, at);
    if (at == std::string::npos) return false;
    at += part.size();
  }
  return true;
}

TEST(Graph, AValueUsedUnderAnotherInterpreterIsAnErrorWithBothNames) {
  Recorder first(Device::current(), {.name = "a.onnx"});
  const std::string first_name = first.name();
  Tensor value = first.input(DType::f32, {2});
  const Tensor known = random_tensor({2}, 1);
  const auto expect_refused = [&](const std::string& state, const std::string& under) {
    for (const std::function<void()>& use : std::vector<std::function<void()>>{
             [&] { relu(value); }, [&] { add(known, value); },
             [&] {
               reshape(value, {2, 1});
             },
             [&] { fill_(value, 1); }, [&] { add_out(value, known, known); }, [&] { value.to(Device::host()); }}) {
      const std::string text = refusal_of(use);
      if (text.empty() && value.device() == Device::host()) continue;  // does not move
      EXPECT_TRUE(in_order(text, {first_name, state, under})) << text;
    }
  };
  expect_refused("being recorded", "the eager interpreter");
  Recorder second(Device::current());
  {
    InterpreterScope scope(second);
    expect_refused("being recorded", second.name());
    EXPECT_TRUE(in_order(refusal_of([&] { second.finish(std::vector<Tensor>{value}); }), {"output 0", first_name}));
  }
  {
    InterpreterScope scope(first);
    first.finish(std::vector<Tensor>{relu(value)});
    expect_refused("has finished", first.name());
  }
  EXPECT_NE(first.name(), first_name);
  EXPECT_TRUE(in_order(first_name, {"(a.onnx)"}));
}

TEST(Graph, MovesBetweenDevicesAreSteps) {
  const Tensor x = random_tensor({3, 4}, 2);
  const Executable graph = record({x}, [](const TensorList& in) -> TensorList {
    const Tensor there = transpose(in[0], 0, 1).to(Device("null"));
    EXPECT_EQ(there.device(), Device("null"));
    return {there.to(Device("cpu")), there};
  });
  EXPECT_EQ(
      std::count_if(graph.steps.begin(), graph.steps.end(), [](const Step& step) { return step.op->name == "to"; }), 2);
  const TensorList results = run(graph, std::vector<Tensor>{x});
  EXPECT_EQ(results[0].device(), Device("cpu"));
  EXPECT_EQ(results[1].device(), Device("null"));
  for (const Tensor& result : results) {
    EXPECT_EQ(result.to_host<float>(), contiguous(transpose(x, 0, 1)).to_host<float>());
  }
}

TEST(Graph, WritesFromTheHostAreSteps) {
  const Tensor x = random_tensor({2, 3}, 3);
  std::vector<float> data{1, 2, 3, 4, 5, 6};
  const Executable graph = record({x}, [&](const TensorList& in) -> TensorList {
    Tensor copy = mul(in[0], Scalar(2.0));
    copy.copy_from(data.data());
    return {copy};
  });
  std::fill(data.begin(), data.end(), 0.0f);  // it belongs to the caller again
  EXPECT_EQ(run(graph, std::vector<Tensor>{x})[0].to_host<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Graph, LargeRangesAreSteps) {
  const Tensor x = random_tensor({4096}, 4);
  expect_same({x}, [](const TensorList& in) -> TensorList {
    return {add(in[0], arange(4096, DType::f32, in[0].device())), mul(in[0], cast(arange(-1.0, 4095.0), DType::f32))};
  });
  const Executable graph = record(
      {x}, [](const TensorList& in) -> TensorList { return {add(in[0], arange(4096, DType::f32, in[0].device()))}; });
  EXPECT_EQ(graph.steps.size(), 3u);  // arange, cast, add
}

TEST(Graph, ErrorsNameTheLabelAndTheDevice) {
  const std::vector<int64_t> indices = {7};
  const Tensor index = Tensor::from<int64_t>(indices, {1});
  const Tensor table = random_tensor({3, 2}, 10);
  const Executable graph =
      record({index}, [&](const TensorList& in) -> TensorList { return {gather_slices(table, 0, in[0])}; },
             {"node 14 (/embed/Gather)"});
  try {
    run(graph, std::vector<Tensor>{index})[0].to_host<float>();
    FAIL() << "an index out of range was taken";
  } catch (const Error& error) {
    EXPECT_NE(
        std::string(error.what()).find("while running node 14 (/embed/Gather) on " + Device::current().spelling()),
        std::string::npos)
        << error.what();
  }
}

TEST(Graph, ThreadsShareOneProgram) {
  const Program code = [](const TensorList& in) -> TensorList { return {add(relu(in[0]), exp(in[0]))}; };
  const Executable graph = record({random_tensor({100}, 1)}, code);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Tensor x = random_tensor({100}, t);
      const std::vector<float> expected = code({x})[0].to_host<float>();
      for (int i = 0; i < 50; ++i) {
        if (run(graph, std::vector<Tensor>{x})[0].to_host<float>() != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tenon::graph
