// The engine of backward: order, release, hooks, options, threads, errors.
#include "core/autograd/engine.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "core/autograd/interpreter.h"
#include "core/compile/compile.h"
#include "core/ops/op_rows.h"
#include "core/vm/storage.h"
#include "tests/unit/autograd/numbers.h"

namespace tenon {
namespace {

TEST(Backward, GivesTheGradientsOfLeaves) {
  const Tensor x = leaf({1, -2, 3});
  const Tensor y = leaf({4, 5, 6});
  sum(relu(x) * y + x).backward();
  EXPECT_EQ(numbers(x.grad()), (Values{5, 1, 7}));
  EXPECT_EQ(numbers(y.grad()), (Values{1, 0, 3}));
  EXPECT_TRUE(x.is_leaf());
  EXPECT_FALSE((x + y).is_leaf());
}

TEST(Backward, AddsToWhatALeafHas) {
  const Tensor x = leaf({1, 2});
  sum(x * 3).backward();
  const Tensor first = x.grad();
  sum(x * x).backward();
  EXPECT_EQ(numbers(x.grad()), (Values{5, 7}));
  EXPECT_EQ(x.grad().impl(), first.impl()) << "a gradient keeps its tensor";
  x.set_grad({});
  EXPECT_FALSE(x.grad().defined());
}

TEST(Backward, GivesTwoLeavesGradientsOfTheirOwn) {
  const Tensor x = leaf({1, 2});
  const Tensor y = leaf({3, 4});
  sum(x + y).backward();
  x.grad().copy_from(Values{9, 9}.data());
  EXPECT_EQ(numbers(y.grad()), (Values{1, 1}));
}

TEST(Backward, WeighsTheElementsOfAnOutput) {
  const Tensor x = leaf({1, 2});
  (x * x).backward(with_values({10, 1}, {2}));
  EXPECT_EQ(numbers(x.grad()), (Values{20, 4}));
  EXPECT_EQ(error_of([&] { (x * 2).backward(); }),
            "backward: output 0 of shape [2] has 2 elements; only an output of one element may omit its "
            "gradient.");
  EXPECT_EQ(error_of([&] { (x * 2).backward(with_values({1}, {1})); }),
            "backward: the gradient given for output 0 is f64 [1]; the output is f64 [2].");
}

TEST(Backward, TakesALongChainWithoutRecursion) {
  const Tensor x = leaf({1});
  Tensor y = x + 0;
  for (int i = 0; i < 1'000'000; ++i) y = neg(y);
  y.backward();
  EXPECT_EQ(numbers(x.grad()), (Values{1}));
}

TEST(Backward, ReleasesALongChainThatNeverRanWithoutRecursion) {
  const Tensor x = leaf({1});
  Tensor y = x + 0;
  for (int i = 0; i < 1'000'000; ++i) y = y * x;
  y = Tensor();
  EXPECT_TRUE(x.requires_grad());
}

TEST(Backward, SumsInAFixedOrder) {
  // In another order the small terms would vanish: they come first, because they belong to the ops that were called
  // last.
  const Tensor x = Tensor::from<float>(std::vector<float>{1}, {1}).requires_grad_();
  Tensor total = x * 1e8f;
  for (int i = 0; i < 8; ++i) total = total + x;
  total.backward();
  EXPECT_EQ(x.grad().to_host<float>()[0], 100000008.0f);
}

TEST(Backward, RunsEachHookOnceWithTheWholeGradient) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  int runs = 0;
  Values seen;
  register_hook(y, [&](const Tensor& gradient) {
    ++runs;
    seen = numbers(gradient);
    return gradient * 10;
  });
  int after = 0;
  register_hook_after_accumulation(x, [&] { after += numbers(x.grad())[0] == 80; });
  sum(y * 3 + y).backward();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(seen, (Values{4, 4}));
  EXPECT_EQ(numbers(x.grad()), (Values{80, 80}));
  EXPECT_EQ(after, 1);
}

TEST(Backward, RunsNoHookThatWasRemoved) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  std::string runs;
  HookHandle first = register_hook(y, [&](const Tensor&) {
    runs += 'a';
    return Tensor();
  });
  register_hook(y, [&](const Tensor&) {
    runs += 'b';
    return Tensor();
  });
  HookHandle after = register_hook_after_accumulation(x, [&] { runs += 'c'; });
  backward({sum(y)}, {}, {true, false});
  EXPECT_EQ(runs, "abc");
  first.remove();
  first.remove();
  after.remove();
  sum(y).backward();
  EXPECT_EQ(runs, "abcb");
}

TEST(Backward, OutlivesTheHandlesOfHooksAndTheOtherWayRound) {
  HookHandle handle;
  {
    const Tensor x = leaf({1, 2});
    handle = register_hook(x * 2, [](const Tensor&) { return Tensor(); });
  }
  handle.remove();
}

TEST(Backward, RunsAHookThatAHookHasAddedNextTime) {
  const Tensor x = leaf({1});
  int added = 0;
  register_hook(x, [&](const Tensor&) {
    register_hook(x, [&](const Tensor&) {
      ++added;
      return Tensor();
    });
    return Tensor();
  });
  sum(x * 1).backward();
  EXPECT_EQ(added, 0);
  sum(x * 1).backward();
  EXPECT_EQ(added, 1);
}

TEST(Backward, RefusesAHookThatGivesAnotherShape) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  register_hook(y, [](const Tensor&) { return with_values({1}, {1}); });
  EXPECT_EQ(error_of([&] { sum(y).backward(); }),
            "backward: a hook on a tensor that mul made gave a gradient of f64 [1], not of f64 [2].");
}

TEST(Backward, KeepsTheGradientOfAnotherTensorOnDemand) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  EXPECT_FALSE(y.grad().defined());
  y.retain_grad();
  sum(y * y).backward();
  EXPECT_EQ(numbers(y.grad()), (Values{4, 8}));
}

TEST(Backward, RefusesHooksInsideARecording) {
  const Tensor x = leaf({1, 2});
  const Tensor ones = with_values({1, 1}, {2});
  const auto step = [&x](auto hook) {
    return compile([&x, hook](const Tensor& y) {
      const Tensor z = x * y;
      HookHandle handle = hook(z);
      sum(z).backward();
      handle.remove();
      return z;
    });
  };
  EXPECT_NE(error_of([&] {
              step([](const Tensor& z) { return register_hook(z, [](const Tensor&) { return Tensor(); }); })(ones);
            }).find("has a hook, which a recording cannot hold"),
            std::string::npos);
  HookHandle after = register_hook_after_accumulation(x, [] {});
  EXPECT_NE(error_of([&] {
              step([](const Tensor&) { return HookHandle(); })(ones);
            }).find("a leaf has a hook after accumulation, which a recording cannot hold"),
            std::string::npos);
  after.remove();
}

TEST(Backward, AddsToAGradientThatIsKept) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  y.retain_grad();
  y.retain_grad();
  backward({sum(y * y)}, {}, {true, false});
  sum(y).backward();
  EXPECT_EQ(numbers(y.grad()), (Values{5, 9}));
}

TEST(Backward, KeepsTheGradientOfTheNewElementsAfterAWrite) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  y.retain_grad();
  mul_(y, 3);
  sum(y * y).backward();
  EXPECT_EQ(numbers(y.grad()), (Values{12, 24})) << "of y after the write; before, it is three times that";
  EXPECT_EQ(numbers(x.grad()), (Values{72, 144}));
  Tensor base = x * 1;
  const Tensor part = slice(base, 0, 0, 1);
  part.retain_grad();
  mul_(base, 5);
  sum(part).backward();
  EXPECT_EQ(numbers(part.grad()), (Values{1}));
}

TEST(Backward, DropsWhatWasSavedUnlessTheGraphIsRetained) {
  const Tensor x = leaf({1, 2});
  const Tensor y = sum(x * x);
  backward({y}, {}, {true, false});
  y.backward();
  EXPECT_EQ(numbers(x.grad()), (Values{4, 8}));
  EXPECT_EQ(error_of([&] { y.backward(); }),
            "backward: what mul saved for its gradient was freed by an earlier backward.\n"
            "  while computing the gradient of mul");
}

TEST(Backward, ReleasesTheMemoryThatForwardSaved) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  const SharedStorage storage = y.impl()->storage;
  const Tensor loss = sum(y * y);
  EXPECT_GT(storage.tensor_count(), 1);
  loss.backward();
  EXPECT_EQ(storage.tensor_count(), 1);
}

TEST(Backward, CanCreateAGraph) {
  const Tensor x = leaf({2});
  const TensorList first = grad({x * x * x}, {x}, {}, {false, true});
  EXPECT_EQ(numbers(first[0]), (Values{12}));
  const TensorList second = grad({first[0]}, {x}, {}, {false, true});
  EXPECT_EQ(numbers(second[0]), (Values{12}));
  EXPECT_EQ(numbers(grad({second[0]}, {x})[0]), (Values{6}));
}

TEST(Backward, LeadsThroughAResultThatAnOpHasSaved) {
  const Tensor x = leaf({0.5});
  const Tensor first = grad({exp(x)}, {x}, {}, {false, true})[0];
  EXPECT_NEAR(numbers(grad({first}, {x})[0])[0], std::exp(0.5), 1e-12);
}

TEST(Grad, ComputesOnlyWhatIsAsked) {
  const Tensor x = leaf({1, 2});
  const Tensor w = leaf({3, 4});
  const Tensor y = x * w;
  const Tensor z = relu(x);
  int runs = 0;
  register_hook(z, [&](const Tensor& gradient) {
    ++runs;
    return gradient;
  });
  EXPECT_EQ(numbers(grad({sum(y * y + z)}, {y})[0]), (Values{6, 16}));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_EQ(error_of([&] { grad({sum(x)}, {w}); }),
            "grad: the outputs do not depend on input 0 of shape [2]; allow_unused gives an undefined tensor for it.");
  EXPECT_FALSE(grad({sum(x)}, {w}, {}, {false, false, true})[0].defined());
  EXPECT_EQ(runs, 0) << "no gradient of z is needed";
}

TEST(Modes, NoGradRemembersNothing) {
  const Tensor x = leaf({1, 2});
  {
    const NoGrad scope;
    EXPECT_FALSE((x * 2).requires_grad());
    mul_(Tensor(x), 3);  // a leaf may be written here
  }
  EXPECT_TRUE((x * 2).requires_grad());
  EXPECT_EQ(numbers(x), (Values{3, 6}));
}

TEST(Modes, InferenceModeRefusesToAskForGradients) {
  const InferenceMode scope;
  EXPECT_EQ(error_of([] { leaf({1}); }),
            "requires_grad_: an InferenceMode scope is open, in which nothing has a gradient.");
}

TEST(Modes, OnlyFloatsWantGradients) {
  EXPECT_EQ(error_of([] { arange(3).requires_grad_(); }),
            "requires_grad_: a tensor of i64 has no gradient; only floating dtypes have one.");
  EXPECT_EQ(error_of([] { (leaf({1}) * 2).requires_grad_(false); }),
            "requires_grad_: a tensor of shape [1] was made by an op, so it is not a leaf; use detach().");
}

TEST(Modes, ATensorOfAnotherThreadIsRememberedToo) {
  std::thread([] { sum(ones({2})).wait(); }).join();
  const Tensor x = leaf({1, 2});
  bool remembered = false;
  std::thread([&] { remembered = (x * 2).requires_grad(); }).join();
  EXPECT_TRUE(remembered);
}

TEST(Broadcasting, IsUndoneForEachArgument) {
  const Tensor x = random_tensor({2, 1, 3}, 1).requires_grad_();
  const Tensor y = random_tensor({4, 1}, 2).requires_grad_();
  sum(x + y).backward();
  EXPECT_EQ(x.grad().dims(), (Dims{2, 1, 3}));
  EXPECT_EQ(numbers(x.grad()), Values(6, 4));
  EXPECT_EQ(y.grad().dims(), (Dims{4, 1}));
  EXPECT_EQ(numbers(y.grad()), Values(4, 6));
}

TEST(Broadcasting, TheGradientHasTheDtypeOfItsTensor) {
  const Tensor x = Tensor::from<float>(std::vector<float>{1, 2}, {2}).requires_grad_();
  const Tensor y = leaf({3, 4});
  sum(x * y).backward();
  EXPECT_EQ(x.grad().dtype(), DType::f32);
  EXPECT_EQ(numbers(y.grad()), (Values{1, 2}));
}

TEST(Threads, RunBackwardOfDifferentGraphsIntoOneLeaf) {
  const Tensor w = leaf({1, 2});
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) sum(relu(w * 2) + w).backward();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(numbers(w.grad()), Values(2, 3 * kThreads * kRounds));
}

// Records the gradient that reaches it and passes it on.
class NotingInterpreter final : public Interpreter {
 public:
  std::string name() const override { return "the noting interpreter"; }
  void apply(const OpCall& call) override {
    names.insert(std::string(call.op->name));
    eager_interpreter().apply(call);
  }
  bool host_value_known(const Tensor&) override { return true; }

  std::set<std::string> names;
};

TEST(Interpreter, HandsForwardAndBackwardToTheOneBelow) {
  NotingInterpreter below;
  autograd::GradientInterpreter gradients(below);
  const InterpreterScope scope(gradients);
  const Tensor x = leaf({1, -2});
  sum(relu(x)).backward();
  EXPECT_EQ(numbers(x.grad()), (Values{1, 0}));
  for (const char* name : {"relu", "sum", "expand", "le", "where"}) EXPECT_EQ(below.names.count(name), 1u) << name;
}

// Outside gradients, arguments that want one do not change what is called.
TEST(Interpreter, GetsFastOpsIfNothingIsRecorded) {
  NotingInterpreter below;
  const InterpreterScope scope(below);
  const Tensor x = leaf({1, -2}), weight = ones({8, 1}).requires_grad_(), state = zeros({1, 1, 2});
  lstm(reshape(x, {2, 1, 1}), state, state, {weight, ones({8, 2}).requires_grad_()}, false);
  EXPECT_EQ(below.names.count("lstm_layer"), 1u);
  EXPECT_EQ(below.names.count("sigmoid"), 0u);
  below.names.clear();
  max(x, 0);
  EXPECT_EQ(below.names.count("amax"), 1u);
  EXPECT_EQ(below.names.count("gather"), 0u);
}

// Returns its argument for every op.
class GivingInterpreter final : public Interpreter {
 public:
  std::string name() const override { return "the giving interpreter"; }
  void apply(const OpCall& call) override { call.outputs[0] = call.inputs[0]->detach(); }
  bool host_value_known(const Tensor&) override { return true; }
};

TEST(Interpreter, RefusesAnOpWithoutAGradientAndSaysWhy) {
  GivingInterpreter below;
  autograd::GradientInterpreter gradients(below);
  const Tensor x = leaf({1, -2});
  const Tensor* inputs[] = {&x};
  Tensor result;
  OpCall call;
  call.op = &op_row(OpId::isnan);
  call.inputs = inputs;
  call.outputs = {&result, 1};
  EXPECT_EQ(error_of([&] { gradients.apply(call); }),
            "isnan: an argument requires a gradient, which this op does not have: the result is bool.");
}

TEST(Interpreter, GivesTheGradientOnTheDeviceOfItsTensor) {
  const Tensor x = leaf({1, -2});
  sum(x.to(Device("null")) * 3).backward();
  EXPECT_EQ(x.grad().device(), x.device());
  EXPECT_EQ(numbers(x.grad()), (Values{3, 3}));
}

TEST(Interpreter, NamesWhatItWraps) {
  EXPECT_EQ(autograd::eager_gradients().name(), "gradients over the eager interpreter");
}

}  // namespace
}  // namespace tenon
