// A program cancels ops and models that wait for a compiler. The asynchronous fake compiles slowly.
#include "core/background/cancellation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

#include "core/graph/execute/islands.h"
#include "core/graph/recorder.h"
#include "core/ops/ops.h"
#include "loader/loader.h"
#include "tests/fakes/async/control.h"

namespace tenon {
namespace {

using fakes::async_control;

constexpr uint64_t kForEver = 600'000'000;  // microseconds; longer than the test may take

class Cancellations : public ::testing::Test {
 protected:
  static Device device() {
    static const Device one = [] {
      async_control().memory = uint64_t{64} << 20;
      async_control().reference = async_control().graphs = true;
      loader::register_provider("compiling", fakes::async_query);
      return Device("compiling:0");
    }();
    return one;
  }

  void SetUp() override {
    static_cast<void>(device());
    async_control().cancelled_creates = async_control().created_primitives = 0;
    async_control().graph_seed = 0;
  }
  void TearDown() override {
    async_control().create_us = 0;
    EXPECT_EQ(async_control().creating, 0u);
    EXPECT_EQ(async_control().violation(), "");
  }

  // A number of floats that no other test uses, so that the kernels are new.
  static Tensor new_size() {
    static int64_t length = 1000;
    ++length;
    return Tensor::from<float>(std::vector<float>(static_cast<size_t>(length), -2.0f), {length}, device());
  }
  static Status status_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.status();
    }
    return Status();
  }
  static void wait_for_compilers(uint64_t count) {
    while (async_control().creating < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

TEST_F(Cancellations, AnOpThatWaitsForACompilerIsStoppedAndRunsLater) {
  async_control().create_us = kForEver;
  const Tensor x = new_size();
  const Cancellation stop;
  Status stopped, again;
  std::thread worker([&] {
    {
      const CancellationScope scope(stop);
      stopped = status_of([&] { exp(x); });
    }
    async_control().create_us = 0;
    again = status_of([&] { EXPECT_FLOAT_EQ(exp(x).to_host<float>()[0], std::exp(-2.0f)); });
  });
  wait_for_compilers(1);
  stop.cancel();
  worker.join();
  EXPECT_EQ(stopped.code(), Code::cancelled) << stopped.message();
  EXPECT_NE(stopped.message().find("The program cancelled this: creating a primitive on compiling:0."),
            std::string::npos)
      << stopped.message();
  EXPECT_NE(stopped.message().find("exp"), std::string::npos) << stopped.message();
  EXPECT_EQ(async_control().cancelled_creates, 1u);
  EXPECT_TRUE(again.ok()) << again.message();
}

TEST_F(Cancellations, AnotherThreadThatWantsTheSameKernelGetsIt) {
  async_control().create_us = 400'000;
  const Tensor x = new_size();
  const Cancellation stop;
  Status stopped;
  float other = 0;
  std::thread first([&] {
    const CancellationScope scope(stop);
    stopped = status_of([&] { exp(x); });
  });
  std::thread second([&] { other = exp(x).to_host<float>()[0]; });
  wait_for_compilers(2);
  stop.cancel();
  first.join();
  second.join();
  EXPECT_EQ(stopped.code(), Code::cancelled);
  EXPECT_FLOAT_EQ(other, std::exp(-2.0f));
  EXPECT_EQ(async_control().cancelled_creates, 1u);
  EXPECT_EQ(async_control().created_primitives, 1u);
}

TEST_F(Cancellations, OneThatCameBeforeAsksNoCompilerAndStopsNothingElse) {
  const Tensor x = new_size(), y = new_size();
  const std::vector<float> wanted = exp(x).to_host<float>();
  const uint64_t created = async_control().created_primitives;
  const Cancellation stop;
  stop.cancel();
  EXPECT_TRUE(stop.cancelled());
  {
    const CancellationScope outer(stop);
    const CancellationScope inner((Cancellation()));
    EXPECT_EQ(exp(x).to_host<float>(), wanted) << "its kernel is there";
    EXPECT_EQ(status_of([&] { exp(y); }).code(), Code::cancelled) << "the outer scope counts";
    float elsewhere = 0;
    std::thread([&] { elsewhere = exp(y).to_host<float>()[0]; }).join();
    EXPECT_FLOAT_EQ(elsewhere, std::exp(-2.0f)) << "a scope is one thread's";
    EXPECT_FLOAT_EQ(exp(y).to_host<float>()[0], std::exp(-2.0f)) << "the other thread made its kernel";
  }
  EXPECT_EQ(async_control().cancelled_creates, 0u);
  EXPECT_EQ(async_control().created_primitives, created + 1);
}

TEST_F(Cancellations, AGraphThatCompilesIsStoppedAndCompilesLater) {
  const Tensor x = new_size();
  const auto record = [&] {
    graph::Recorder recorder(device());
    InterpreterScope scope(recorder);
    const Tensor value = recorder.input(x.dtype(), x.dims());
    return graph::prepare(recorder.finish(TensorList{neg(exp(value))}), {.whole_graphs = false, .scheduled = false});
  };
  graph::Executable program = record();
  async_control().create_us = kForEver;
  const Cancellation stop;
  Status stopped;
  std::thread worker([&] {
    const CancellationScope scope(stop);
    stopped = status_of([&] { graph::take_islands(&program); });
  });
  wait_for_compilers(1);
  stop.cancel();
  worker.join();
  EXPECT_EQ(stopped.code(), Code::cancelled);
  EXPECT_EQ(stopped.message(), "The program cancelled this: compiling a graph of 2 nodes on compiling:0.");
  async_control().create_us = 0;
  graph::Executable whole = record();
  graph::take_islands(&whole);
  EXPECT_EQ(whole.steps.size(), 1u);
  EXPECT_FLOAT_EQ(graph::run(whole, std::vector<Tensor>{x})[0].to_host<float>()[0], -std::exp(-2.0f));
}

// A provider that stops without being asked has a defect, and the program was not cancelled.
TEST_F(Cancellations, AProviderThatStopsUnaskedIsToldSo) {
  const Tensor x = new_size();
  async_control().create_answer = EP_STATUS_CANCELLED;
  const Status status = status_of([&] { exp(x); });
  async_control().create_answer = EP_STATUS_OK;
  EXPECT_EQ(status.code(), Code::internal);
  EXPECT_NE(status.message().find("without a request to stop (rule E04)"), std::string::npos) << status.message();
  EXPECT_FLOAT_EQ(exp(x).to_host<float>()[0], std::exp(-2.0f));
}

}  // namespace
}  // namespace tenon
