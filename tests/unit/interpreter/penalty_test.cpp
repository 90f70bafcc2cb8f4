// The penalty of an order of strides, as stated by the CPU provider.
#include "core/interpreter/launch_terms.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "core/interpreter/inference.h"
#include "core/ops/ops.h"
#include "tests/unit/interpreter/positive_floats.h"

namespace tenon {
namespace {

// Reads the penalty of the last primitive that runs under it, and runs it.
class Asking final : public Interpreter {
 public:
  std::string name() const override { return "the asking interpreter"; }
  bool host_value_known(const Tensor&) override { return true; }
  void apply(const OpCall& call) override {
    if (call.op->form == OpForm::kernel)
      penalty = value_or_throw(launch_terms(call, value_or_throw(device_of(call)))).penalty;
    eager_interpreter().apply(call);
  }
  uint64_t penalty = 0;
};

uint64_t penalty_in(const std::function<Tensor(const Tensor&)>& run, const Tensor& x) {
  Asking asking;
  const InterpreterScope scope(asking);
  run(x);
  return asking.penalty;
}

TEST(Penalty, OfConvolutionsIsTwoThirdsOfWhatIsReordered) {
  const Device cpu("cpu");
  const Tensor x = positive_floats({1, 32, 8, 8}, 1, cpu), last = contiguous(x, "channels_last");
  const Tensor square = positive_floats({16, 32, 3, 3}, 2, cpu), point = positive_floats({16, 32, 1, 1}, 2, cpu);
  const Tensor depthwise = positive_floats({32, 1, 3, 3}, 2, cpu);
  struct Case {
    std::string name;
    std::function<Tensor(const Tensor&)> run;
    uint64_t elements;  // elements of SRC and DST together
  };
  const Case cases[] = {
      {"3x3", [&](const Tensor& in) { return conv2d(in, square, {}, 1, 1); }, 32 * 64 + 16 * 64},
      {"depthwise", [&](const Tensor& in) { return conv2d(in, depthwise, {}, 2, 1, 1, 32); }, 32 * 64 + 32 * 16},
      {"pointwise, which runs as it lies", [&](const Tensor& in) { return conv2d(in, point); }, 0},
      {"pointwise with a step", [&](const Tensor& in) { return conv2d(in, point, {}, 2); }, 32 * 64 + 16 * 16},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(penalty_in(one.run, x), one.elements * sizeof(float) * 2 / 3) << one.name;
    EXPECT_EQ(penalty_in(one.run, last), 0u) << one.name;
  }
}

TEST(Penalty, OfPrimitivesThatWalkAnyOrderIsZero) {
  const Device cpu("cpu");
  const Tensor x = positive_floats({1, 32, 8, 8}, 1, cpu), last = contiguous(x, "channels_last");
  const Tensor list = positive_floats({32}, 2, cpu);
  for (const Tensor& in : {x, last}) {
    EXPECT_EQ(penalty_in([&](const Tensor& t) { return batch_norm(t, list, list); }, in), 0u);
    EXPECT_EQ(penalty_in([](const Tensor& t) { return concat({t, t}, 1); }, in), 0u);
    EXPECT_EQ(penalty_in([](const Tensor& t) { return max_pool2d(t, 2); }, in), 0u);
    EXPECT_EQ(penalty_in([](const Tensor& t) { return std::get<0>(max_pool_with_indices(t, {2, 2})); }, in), 0u);
  }
}

}  // namespace
}  // namespace tenon
