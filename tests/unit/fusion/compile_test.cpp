// Kernels that are compiled in the background of a program that needs them, and kernels for other sizes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <future>
#include <random>
#include <thread>

#include "core/background/background.h"
#include "core/background/cancellation.h"
#include "core/compile/compile.h"
#include "core/graph/execute/check_kernels.h"
#include "core/graph/execute/executable.h"
#include "core/graph/fusion.h"
#include "core/graph/passes/passes.h"
#include "core/graph/recorder.h"
#include "core/graph/signature.h"
#include "core/interpreter/execution_report.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

// Collects the log about compiling during its lifetime.
class Compiles {
 public:
  Compiles() : levels_(loader::log_levels.load()) {
    loader::log_levels.store(UINT64_C(0x4444444444444444));
    loader::set_log_sink([this](loader::LogLevel, std::string_view, std::string_view message) {
      const bool made = message.find("compiled by") != std::string_view::npos;
      if (made || message.find("read from the cache") != std::string_view::npos) ++modules_;
    });
  }
  ~Compiles() {
    loader::set_log_sink({});
    loader::log_levels.store(levels_);
  }
  Compiles(const Compiles&) = delete;
  Compiles& operator=(const Compiles&) = delete;

  int modules() const { return modules_; }  // modules that the device has created

 private:
  const uint64_t levels_;
  std::atomic<int> modules_{0};
};

// Keeps the background thread busy until its destruction.
class Busy {
 public:
  explicit Busy(DeviceState* device) {
    std::shared_future<void> wait = gone_.get_future().share();
    compile_in_background(device, [wait] {
      while (wait.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
        if (CancellationScope::cancelled_here()) return;
      }
    });
  }
  ~Busy() { gone_.set_value(); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  std::promise<void> gone_;
};

Tensor random_tensor(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(0.25f, 2);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (float& value : data) value = random() % 2 == 0 ? numbers(random) : -numbers(random);
  return Tensor::from<float>(data, dims);
}

// A softmax whose sizes are all open, fused. Its text contains the number `scale`, so no other test has its kernel.
class Softmax {
 public:
  explicit Softmax(double scale) : scale_(scale), graph_("softmax") {
    Recorder recorder(Device::current());
    const InterpreterScope scope(recorder);
    const Tensor x = recorder.input(DType::f32, Dims{8, 40}, std::vector<std::string>{"rows", "columns"});
    graph_ = recorder.finish(TensorList{code(x)});
    find_pass("fuse").run(&graph_, {});
  }

  Tensor code(const Tensor& x) const { return softmax(x * Scalar(scale_), -1); }
  Executable prepared(const Tensor& x, const PrepareOptions& options) const {
    symbolic::Values sizes(graph_.arena());
    EXPECT_EQ(why_not(graph_, TensorList{x}, &sizes), "");
    return prepare(graph_, &sizes, options);
  }
  // Runs `program`, checks its result, and returns what it launched.
  std::string run_on(const Executable& program, const Tensor& x) const {
    std::vector<StepExecution> executions;
    const std::vector<float> got = run(program, TensorList{x}, {}, &executions)[0].to_host<float>();
    const std::vector<float> expected = code(x).to_host<float>();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << i;
    std::string text;
    for (const StepExecution& one : executions) text += (text.empty() ? "" : "; ") + one.entry.op;
    return text;
  }

 private:
  const double scale_;
  Graph graph_;
};

const PrepareOptions kWait{.fuse = true, .compile = Compiling::wait};
const PrepareOptions kBeside{.fuse = true, .compile = Compiling::beside};
const std::string kFused = "fused (mul softmax)";
const std::string kOneByOne = "mul; softmax";

DeviceState* device_of(const Tensor& x) { return x.impl()->device; }

TEST(KernelBuckets, ANewSizeCompilesNothingUnlessItsBucketIsNew) {
  const Softmax program(1.25);
  const Compiles compiles;
  Executable last;
  for (const auto& [columns, expected] : std::vector<std::pair<int64_t, int>>{
           {40, 1}, {41, 1}, {8192, 1}, {2, 1}, {8193, 2}, {20000, 2}, {16, 2}, {8192, 2}}) {
    for (const int64_t rows : {3, 8}) {
      const Tensor x = random_tensor({rows, columns}, static_cast<uint32_t>(columns + rows));
      EXPECT_EQ(program.run_on(program.prepared(x, kWait), x), kFused);
      EXPECT_EQ(compiles.modules(), expected) << columns;
    }
  }
}

TEST(KernelBuckets, AnExecutableForOtherSizesIsMadeFromTheOneBefore) {
  const Softmax program(1.375);
  const Tensor first = random_tensor({3, 40}, 1), second = random_tensor({5, 9000}, 2),
               third = random_tensor({2, 7}, 3);
  const Executable before = program.prepared(first, kWait);
  PrepareOptions options = kWait;
  options.like = &before;
  for (const Tensor& x : {second, first, third, second}) {
    const Executable next = program.prepared(x, options);
    EXPECT_EQ(program.run_on(next, x), kFused);
  }
}

TEST(KernelsBeside, TakeOverOnceTheyAreCompiled) {
  const Softmax program(1.5);
  const Tensor x = random_tensor({7, 129}, 1);
  std::optional<Busy> busy(device_of(x));
  const Executable early = program.prepared(x, kBeside), other = program.prepared(x, kBeside);
  EXPECT_EQ(program.run_on(early, x), kOneByOne);
  EXPECT_FALSE(is_outdated(early));
  busy.reset();
  finish_compiling();
  EXPECT_TRUE(is_outdated(early));
  EXPECT_TRUE(is_outdated(other));
  EXPECT_EQ(program.run_on(early, x), kOneByOne);
  program.prepared(x, kBeside);
  finish_compiling();  // the text of the bucket
  const Executable late = program.prepared(x, kBeside);
  EXPECT_EQ(program.run_on(late, x), kFused);
  EXPECT_FALSE(is_outdated(late));
  PrepareOptions like = kBeside;
  like.like = &early;
  EXPECT_EQ(program.run_on(program.prepared(x, like), x), kFused);
}

// The text for all sizes is compiled first, so that no size waits for a second text; it gives the bits of the bucket's.
TEST(KernelsBeside, SizesOfANewBucketRunTheGeneralTextMeanwhile) {
  const Softmax program(1.5625);
  const Compiles compiles;
  const Tensor x = random_tensor({7, 129}, 1), longer = random_tensor({3, 9000}, 2);
  std::vector<std::string> buckets;
  std::vector<std::vector<float>> results;
  for (int round = 0; round < 4; ++round) {
    std::optional<Busy> busy(
        device_of(x));  // so that the text of this round is not ready before the round looks for it
    const Executable one = program.prepared(x, kBeside);
    busy.reset();
    buckets.push_back(one.steps[0].fused == nullptr ? "none" : one.steps[0].fused->bucket);
    if (round != 0) results.push_back(run(one, TensorList{x})[0].to_host<float>());
    finish_compiling();
    EXPECT_EQ(compiles.modules(), std::min(round + 1, 2));
    EXPECT_EQ(is_outdated(one), round < 2);
  }
  EXPECT_EQ(buckets[0], "none");
  EXPECT_EQ(buckets[1], "");
  EXPECT_NE(buckets[2], "");
  EXPECT_EQ(buckets[3], buckets[2]);
  EXPECT_EQ(results[0], results[1]);
  const Executable other = program.prepared(longer, kBeside);
  EXPECT_EQ(program.run_on(other, longer), kFused);
  EXPECT_FALSE(is_outdated(other));
  EXPECT_EQ(compiles.modules(), 2);
}

TEST(KernelsBeside, ServeACompiledFunctionAndItsGradient) {
  const auto code = [](const Tensor& x) { return mean(square(tanh(x * Scalar(1.625)) * x + x)); };
  const auto step = compile(code, {.fuse = true, .compile = Compiling::beside});
  const auto gradient = [&](const auto& function) {
    const Tensor x = random_tensor({9, 33}, 4).requires_grad_();
    function(x).backward();
    return x.grad().template to_host<float>();
  };
  const std::vector<float> expected = gradient(code);
  std::optional<Busy> busy(device_of(random_tensor({1}, 1)));
  for (int i = 0; i < 6; ++i) {
    if (i == 3) {
      busy.reset();
      finish_compiling();
    }
    const std::vector<float> got = gradient(step);
    if (i == 3) finish_compiling();  // the kernels of the gradient
    for (size_t k = 0; k < expected.size(); ++k) ASSERT_NEAR(got[k], expected[k], 1e-5) << i;
  }
  ExecutionScope scope;
  gradient(step);
  bool fused = false;
  for (const ExecutionEntry& entry : scope.take()) fused = fused || entry.rung == Rung::compiled;
  EXPECT_TRUE(fused);
}

TEST(KernelsBeside, AreDroppedWhereTheDeviceEnds) {
  const Softmax program(1.75);
  const Tensor x = random_tensor({7, 129}, 1);
  {
    const Busy busy(device_of(x));
    const Executable early = program.prepared(x, kBeside);
    end_compiling(device_of(x));
    EXPECT_FALSE(is_outdated(early));
    EXPECT_EQ(program.run_on(early, x), kOneByOne);
  }
  std::optional<Busy> busy(device_of(x));
  const Executable again = program.prepared(x, kBeside);
  busy.reset();
  finish_compiling();
  EXPECT_TRUE(is_outdated(again));
  EXPECT_EQ(program.run_on(program.prepared(x, kWait), x), kFused);
}

TEST(KernelsBeside, ThreadsThatWaitAndThreadsThatDoNotCompileOnce) {
  const Softmax program(1.875);
  const Compiles compiles;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const Tensor x = random_tensor({i + 2, 65}, 1);
      const std::string ran = program.run_on(program.prepared(x, i % 2 == 0 ? kWait : kBeside), x);
      EXPECT_TRUE(ran == kFused || (i % 2 == 1 && ran == kOneByOne)) << ran;
    });
  }
  for (std::thread& thread : threads) thread.join();
  finish_compiling();
  EXPECT_LE(compiles.modules(), 2);  // the bucket's text, and the text for all sizes if it was requested first
}

TEST(KernelsBeside, AForkedChildEnds) {
  const Softmax program(2.125);
  const Tensor x = random_tensor({7, 129}, 1);
  const Busy busy(device_of(x));
  const Executable early = program.prepared(x, kBeside);
  const pid_t child = fork();
  if (child == 0) {
    end_compiling(device_of(x));
    std::exit(0);  // runs the hooks
  }
  int status = -1;
  pid_t ended = 0;
  for (int i = 0; i < 500 && (ended = waitpid(child, &status, WNOHANG)) == 0; ++i) usleep(20000);
  if (ended == 0) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  EXPECT_EQ(status, 0);
  end_compiling(device_of(x));
}

// Runs and checks the one fused step of `program`, whose input is `x`. Returns its results.
std::vector<float> checked(const Executable& program, const std::shared_ptr<const RegionStep>& regions,
                           const Tensor& x) {
  Step step = program.steps[0];
  step.regions = regions;
  const Tensor* inputs[] = {&x};
  return run_checked(program, step, inputs)[0].to_host<float>();
}

TEST(KernelChecks, CompareAKernelWithItsOps) {
  const Softmax program(2.25), other(2.5);
  const Tensor x = random_tensor({7, 2049}, 1);
  const Executable right = program.prepared(x, kWait), wrong = other.prepared(x, kWait);
  ASSERT_EQ(right.steps.size(), 1U);
  const std::vector<float> got = checked(right, right.steps[0].regions, x);
  EXPECT_EQ(got, run(right, TensorList{x})[0].to_host<float>());
  ASSERT_EQ(kernel_checks().size(), 1U);
  EXPECT_EQ(kernel_checks()[0].ops, "mul softmax");
  EXPECT_GT(kernel_checks()[0].bound, 0);
  EXPECT_LE(kernel_checks()[0].worst, 1);
  checked(right, wrong.steps[0].regions, x);
  EXPECT_GT(kernel_checks()[0].worst, 1);
  EXPECT_EQ(kernel_checks()[0].launches, 2U);
}

TEST(KernelChecks, TakeOneNumberThatIsNoneForADifference) {
  const Softmax program(2.375);
  const Tensor x = Tensor::from<float>(std::vector<float>(120, -HUGE_VALF), {3, 40});
  const Executable right = program.prepared(x, kWait);
  const double before = kernel_checks().empty() ? 0 : kernel_checks()[0].worst;
  checked(right, right.steps[0].regions, x);  // both give NaN
  EXPECT_EQ(kernel_checks()[0].worst, before);
}

}  // namespace
}  // namespace tenon::graph
