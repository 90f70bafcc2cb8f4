// The third rung: a device that compiles text and has no primitives computes ops by kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/autograd/autograd.h"
#include "core/background/background.h"
#include "core/device/device_state.h"
#include "core/interpreter/compiled_call.h"
#include "core/interpreter/execution_report.h"
#include "core/ops/op_call.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "core/primitive/compiled_module.h"
#include "core/primitive/primitive_cache.h"
#include "loader/loader.h"
#include "primitives/text/format.h"
#include "tests/fakes/masking/masking.h"
#include "tests/unit/interpreter/positive_floats.h"

namespace tenon {
namespace {

using In = const std::vector<Tensor>&;
using Body = std::function<Tensor(In)>;

std::vector<double> numbers(const Tensor& tensor) {
  return cast(tensor.to(Device::host()), DType::f64).to_host<double>();
}

void expect_close(const Tensor& got, const Tensor& wanted, const std::string& what) {
  EXPECT_EQ(got.dims(), wanted.dims()) << what;
  EXPECT_EQ(got.dtype(), wanted.dtype()) << what;
  const std::vector<double> a = numbers(got), b = numbers(wanted);
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < b.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_NEAR(a[i], b[i], 2e-5 * (1 + std::abs(b[i]))) << what << " [" << i << "]";
  }
}

class CompiledCalls : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(Device::host().spelling(), "cpu:0");
    fakes::masking_wrap(std::string(std::getenv("MASKED_PROVIDER")));
    loader::register_provider("bare", fakes::masking_query);
  }
  void SetUp() override {
    if (!takes_modules(Device("bare").state())) GTEST_SKIP() << "the provider compiles no text here";
    Status why;
    if (dialects_of(Device("bare").state(), &why).empty()) GTEST_SKIP() << why.message();
    set("fuse", "on");
    set("compile", "wait");
    fakes::masking_control().reset();
    std::set<int32_t> all;
    for (const OpInfo& op : op_table()) all.insert(op.kind);
    all.erase(EP_PRIMITIVE_fill);
    clear_primitive_cache(Device("bare").state());
    fakes::masking_control().refuse(all);
  }
  void TearDown() override {
    set("fuse", "off");
    set("compile", "beside");
    set("fallback", "host");
    fakes::masking_control().reset();
  }

  static void set(const char* key, const char* value) { ASSERT_TRUE(loader::set_argument(key, value).ok()); }

  // Runs `body` where no earlier choice is remembered: in a new thread, whose tables end with it.
  static void on_fresh_tables(const std::function<void(Device)>& body) {
    std::thread([&] { body(Device("bare")); }).join();
  }

  // The rungs of the ops that `code` runs on `bare`, without kernels and conversions of numbers to tensors: "tanh
  // compiled".
  static std::string rungs(In inputs, const Body& code, Tensor* result, std::string* why) {
    ExecutionScope scope;
    *result = code(inputs);
    std::string text;
    for (const ExecutionEntry& entry : scope.take()) {
      if (entry.device != Device("bare").spelling() || entry.op.starts_with("fused") || entry.op == "full") continue;
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", entry.op, rung_name(entry.rung));
      if (entry.rung != Rung::compiled) *why += entry.reason + "\n";
    }
    return text;
  }

  // Expects that `code` takes the rungs `expected` on the device without primitives, and computes the same as the host.
  static void expect_rungs(const std::vector<Dims>& shapes, const Body& code, const std::string& expected) {
    on_fresh_tables([&](Device bare) {
      std::vector<Tensor> here, there;
      for (size_t i = 0; i < shapes.size(); ++i) {
        there.push_back(positive_floats(shapes[i], static_cast<uint32_t>(i + 1), Device("cpu")));
        here.push_back(there.back().to(bare));
      }
      Tensor result;
      std::string why;
      EXPECT_EQ(rungs(here, code, &result, &why), expected) << why;
      expect_close(result, code(there), expected);
    });
  }
};

TEST_F(CompiledCalls, ComputeWhatADeviceHasNoPrimitiveFor) {
  expect_rungs(
      {{4, 6}}, [](In in) { return tanh(in[0]); }, "tanh compiled");
  expect_rungs(
      {{4, 6}, {6}}, [](In in) { return sub(in[0], in[1]); }, "sub compiled");
  expect_rungs(
      {{4, 6}}, [](In in) { return in[0] * 0.37; }, "mul compiled");
  expect_rungs(
      {{4, 6}}, [](In in) { return clamp(in[0], 0.5, 1.5); }, "clamp compiled");
  expect_rungs(
      {{4, 6}}, [](In in) { return cast(in[0], DType::i32); }, "cast compiled");
  expect_rungs(
      {{4, 6}}, [](In in) { return sum(in[0], {1}); }, "sum compiled");
  expect_rungs(
      {{4, 6}}, [](In in) { return amax(in[0], {0}); }, "amax compiled");
  expect_rungs(
      {{4, 6}}, [](In in) { return softmax(in[0], 1); }, "softmax compiled");
  expect_rungs(
      {{4, 6}}, [](In in) { return softmax(in[0], 0); }, "softmax compiled");
  expect_rungs(
      {{4, 6}}, [](In in) { return log_softmax(in[0], -1); }, "log_softmax compiled");
  expect_rungs(
      {{4, 6}, {6}}, [](In in) { return rms_norm(in[0], {6}, in[1]); }, "rms_norm compiled");
  expect_rungs(
      {{4, 6}, {6}, {6}}, [](In in) { return layer_norm(in[0], {6}, in[1], in[2]); }, "layer_norm compiled");
  expect_rungs(
      {{2, 3}, {2, 5}},
      [](In in) {
        return concat({in[0], in[1]}, 1);
      },
      "concat compiled");
  expect_rungs(
      {{2, 8, 3}, {8}, {8}}, [](In in) { return group_norm(in[0], 2, in[1], in[2]); }, "group_norm compiled");
}

TEST_F(CompiledCalls, ReadInputsAsTheyLie) {
  const Body transposed = [](In in) { return exp(transpose(in[0], 0, 1)); };
  expect_rungs({{5, 7}}, transposed, "exp compiled");
  expect_rungs(
      {{5, 7}, {7, 5}}, [](In in) { return in[0] + transpose(in[1], 0, 1); }, "add compiled");
  expect_rungs(
      {{5, 7}}, [](In in) { return sqrt(slice(in[0], 1, 2, 6)); }, "sqrt compiled");
  expect_rungs(
      {{5, 9}}, [](In in) { return sqrt(slice(in[0], 1, 1, 9, 3)); }, "sqrt compiled");
  expect_rungs(
      {{1, 7}},
      [](In in) {
        return sum(expand(in[0], {4, 7}), {0});
      },
      "sum compiled");
  expect_rungs(
      {{1, 7}},
      [](In in) {
        return exp(expand(in[0], {4, 7}));
      },
      "exp compiled");
  expect_rungs(
      {{3, 5, 7}},
      [](In in) {
        return softmax(permute(in[0], {2, 0, 1}), 1);
      },
      "softmax compiled");
  expect_rungs(
      {{3, 6, 8}},
      [](In in) {
        return sum(slice(permute(in[0], {1, 0, 2}), 2, 1, 7, 2), {2, 0});
      },
      "sum compiled");
  expect_rungs(
      {{4, 6}, {1, 6}, {4, 1}}, [](In in) { return where(gt(in[0], in[1]), in[0], in[2]); },
      "gt compiled; where compiled");
}

TEST_F(CompiledCalls, WriteResultsWhereTheyGo) {
  expect_rungs(
      {{4, 6}, {4, 6}},
      [](In in) {
        Tensor x = clone(in[0]);
        return add_(x, in[1]);
      },
      "cast compiled; cast compiled; add compiled");
  const Body into_columns = [](In in) {
    Tensor x = clone(in[0]);
    Tensor part = slice(x, 1, 1, 5);
    mul_(part, 3);
    return x;
  };
  on_fresh_tables([&](Device bare) {
    const Tensor there = positive_floats({4, 6}, 1, Device("cpu")), here = there.to(bare);
    expect_close(into_columns({here}), into_columns({there}), "columns");
    Tensor x = there.to(bare);
    Tensor y = transpose(x, 0, 1);
    exp_(y);
    expect_close(x, exp(there), "a transposed view, in place");
  });
}

TEST_F(CompiledCalls, ServeEverySizeWithOneText) {
  on_fresh_tables([](Device bare) {
    uint64_t modules = 0;
    for (const int64_t rows : {7, 3, 129, 1000}) {
      const Tensor there = positive_floats({rows, rows + 2}, 1, Device("cpu"));
      expect_close(softmax(there.to(bare), 1), softmax(there, 1), "softmax");
      expect_close(there.to(bare) * (0.5 + static_cast<double>(rows)), there * (0.5 + static_cast<double>(rows)),
                   "mul");
      if (modules == 0) modules = fakes::masking_control().modules;
      EXPECT_EQ(fakes::masking_control().modules, modules) << rows;
    }
    const Tensor one = positive_floats({1, 1}, 1, Device("cpu"));
    expect_close(softmax(one.to(bare), 1), softmax(one, 1), "softmax of one");
    const Tensor none = Tensor::from<float>(std::vector<float>(), Dims{0, 3}, Device("cpu"));
    expect_close(softmax(none.to(bare), 1), softmax(none, 1), "softmax of no elements");
    expect_close(sum(none.to(bare), {0}), sum(none, {0}), "sum of no elements");
  });
}

// Two kernels: a single item would compute alone for a long time.
TEST_F(CompiledCalls, SplitLongReductions) {
  expect_rungs(
      {{600, 700}}, [](In in) { return mean(in[0] * in[0]); }, "mul compiled; mean compiled");
}

TEST_F(CompiledCalls, CompileBesideWhileALowerRungServes) {
  set("compile", "beside");
  on_fresh_tables([](Device bare) {
    const Tensor there = positive_floats({11, 13}, 1, Device("cpu")), here = there.to(bare);
    const Body code = [](In in) { return erf(in[0]); };
    Tensor before, after;
    std::promise<void> go;  // kernels are compiled only after it is set
    compile_in_background(bare.state(), [held = go.get_future().share()] { held.wait(); });
    std::string why;
    for (uint32_t call = 0; call < kCallsBeforeKernels; ++call) {
      EXPECT_EQ(rungs({here}, code, &before, &why), "erf host");
      EXPECT_EQ(why.find("being compiled"), std::string::npos) << call << why;
    }
    EXPECT_EQ(rungs({here}, code, &before, &why), "erf host");
    EXPECT_NE(why.find("its kernels are being compiled"), std::string::npos) << why;
    go.set_value();
    finish_compiling();
    EXPECT_EQ(rungs({here}, code, &after, &why), "erf compiled") << why;
    expect_close(before, erf(there), "meanwhile");
    expect_close(after, erf(there), "then");
    Tensor other;
    std::thread([&] { EXPECT_EQ(rungs({here}, code, &other, &why), "erf compiled") << why; }).join();
  });
}

// Calls of different sizes count together, so a program with changing sizes gets kernels as early. Calls with different
// numbers in the text do not, so a number that always changes gets none.
TEST_F(CompiledCalls, WaitUntilAPatternWasCalledOften) {
  set("compile", "beside");
  on_fresh_tables([](Device bare) {
    const uint64_t modules = fakes::masking_control().modules;
    std::string why;
    Tensor result;
    for (uint32_t call = 0; call < kCallsBeforeKernels; ++call) {
      const Tensor x = positive_floats({3 + call, 5}, call + 1, Device("cpu")).to(bare);
      EXPECT_EQ(rungs(
                    {x}, [](In in) { return log1p(in[0]); }, &result, &why),
                "log1p host")
          << call;
      EXPECT_NE(why.find("kernels are compiled after 16 calls"), std::string::npos) << why;
      const double slope = 0.01 * (call + 1);
      const Body leaky = [slope](In in) { return leaky_relu(in[0], slope); };
      EXPECT_EQ(rungs({x}, leaky, &result, &why), "leaky_relu host") << call;
    }
    finish_compiling();
    EXPECT_EQ(fakes::masking_control().modules, modules);
    const Tensor there = positive_floats({40, 5}, 40, Device("cpu"));
    log1p(there.to(bare));
    finish_compiling();
    EXPECT_EQ(rungs(
                  {there.to(bare)}, [](In in) { return log1p(in[0]); }, &result, &why),
              "log1p compiled")
        << why;
    expect_close(result, log1p(there), "log1p");
    EXPECT_EQ(fakes::masking_control().modules, modules + 1);
  });
}

TEST_F(CompiledCalls, AreSwitchedOffAndSayWhyThereAreNone) {
  set("fuse", "off");
  expect_rungs(
      {{4, 6}}, [](In in) { return tan(in[0]); }, "tan host");
  set("fuse", "on");
  set("fallback", "decompose");
  on_fresh_tables([](Device bare) {
    try {
      asin(positive_floats({4, 6}, 1, Device("cpu")).to(bare) * 1.0);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unsupported);
    }
  });
  set("fallback", "host");
  on_fresh_tables([](Device bare) {
    ExecutionScope scope;
    argmax(positive_floats({4, 6}, 1, Device("cpu")).to(bare), 1);
    const std::vector<ExecutionEntry> entries = scope.take();
    ASSERT_FALSE(entries.empty());
    EXPECT_EQ(entries.back().rung, Rung::host);
    EXPECT_NE(entries.back().reason.find("compiled: no kernel computes argmax"), std::string::npos)
        << entries.back().reason;
  });
}

// A gather reads one element of a row, which costs a kernel the whole row.
TEST_F(CompiledCalls, LeaveOpsThatMayMeetAFaultToTheHost) {
  on_fresh_tables([](Device bare) {
    const Tensor x = positive_floats({3, 4}, 1, Device("cpu")).to(bare);
    const auto taken = [&](int64_t wrong) {
      const Tensor index = Tensor::from<int64_t>({0, wrong, 2}, {3, 1}, Device("cpu")).to(bare);
      Tensor result;
      std::string why;
      EXPECT_EQ(rungs(
                    {x, index}, [](In in) { return gather(in[0], 1, in[1]); }, &result, &why),
                "bitwise_and compiled; gather host")
          << why;
      return result.to(Device::host()).to_host<float>();
    };
    EXPECT_EQ(taken(3).size(), 3U);
    try {
      taken(7);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("7"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("gather"), std::string::npos) << error.what();
    }
    EXPECT_EQ(taken(1).size(), 3U);
  });
}

TEST_F(CompiledCalls, HaveGradients) {
  on_fresh_tables([](Device bare) {
    Tensor grads[2];
    for (int i = 0; i < 2; ++i) {
      Tensor x = positive_floats({5, 9}, 1, Device("cpu")).to(i == 0 ? bare : Device("cpu"));
      x.requires_grad_();
      const Tensor w = positive_floats({5, 9}, 2, Device("cpu")).to(i == 0 ? bare : Device("cpu"));
      sum(softmax(x, 1) * w + tanh(x)).backward();
      grads[i] = x.grad();
    }
    expect_close(grads[0], grads[1], "gradient");
  });
}

}  // namespace
}  // namespace tenon
