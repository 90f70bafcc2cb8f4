// Tensors that ops save for backward: hooks on them, and functions that are recomputed.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "core/compile/compile.h"
#include "core/tensor/generator.h"
#include "core/vm/storage.h"
#include "tests/unit/autograd/numbers.h"

namespace tenon {
namespace {

using Unpack = std::function<Tensor()>;

// ---- hooks ----

TEST(SavedTensorHooks, SeeWhatEachOpSavesAndGiveItBack) {
  const Tensor x = leaf({1, 2});
  std::vector<Values> packed;
  int unpacked = 0;
  Tensor y;
  {
    const SavedTensorHooks hooks([&](const Tensor& tensor) -> Unpack {
      packed.push_back(numbers(tensor));
      EXPECT_FALSE(tensor.requires_grad());
      return [&unpacked, values = numbers(tensor), dims = tensor.dims()] {
        ++unpacked;
        return with_values(values, dims);
      };
    });
    y = sum(exp(x) * x);
  }
  ASSERT_EQ(packed.size(), 3u) << "the result of exp, and both arguments of mul";
  EXPECT_EQ(packed[2], (Values{1, 2}));
  y.backward();
  EXPECT_EQ(unpacked, 3);
  EXPECT_NEAR(numbers(x.grad())[0], 2 * std::exp(1.0), 1e-12);
  EXPECT_NEAR(numbers(x.grad())[1], 3 * std::exp(2.0), 1e-12);
}

TEST(SavedTensorHooks, ChangeWhatBackwardReads) {
  const Tensor x = leaf({3});
  const SavedTensorHooks hooks([](const Tensor& tensor) -> Unpack { return [half = tensor * 0.5] { return half; }; });
  (x * x).backward();
  EXPECT_EQ(numbers(x.grad()), (Values{3})) << "half of each factor";
}

TEST(SavedTensorHooks, FreeTheMemoryOfWhatTheyPack) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  const SharedStorage storage = y.impl()->storage;
  const SavedTensorHooks hooks([](const Tensor& tensor) -> Unpack {
    return [values = numbers(tensor), dims = tensor.dims()] { return with_values(values, dims); };
  });
  const Tensor z = sum(y * y);
  EXPECT_EQ(storage.tensor_count(), 1) << "y itself";
  z.backward();
  EXPECT_EQ(numbers(x.grad()), (Values{8, 16}));
}

TEST(SavedTensorHooks, OfTheInnermostScopeCountAndNoneInsideOfThem) {
  const Tensor x = leaf({2});
  std::string seen;
  const auto noting = [&seen](char name) {
    return [&seen, name](const Tensor& tensor) -> Unpack {
      seen += name;
      const Tensor kept = tensor * 1;  // saves nothing, because a hook calls no hooks
      return [kept] { return kept; };
    };
  };
  const SavedTensorHooks outer(noting('o'));
  Tensor y = exp(x);
  {
    const SavedTensorHooks inner(noting('i'));
    y = exp(y);
  }
  y = exp(y);
  EXPECT_EQ(seen, "oio");
}

TEST(SavedTensorHooks, HaveGradientsOfSecondOrder) {
  const Tensor x = leaf({2});
  Tensor y;
  {
    const SavedTensorHooks hooks([](const Tensor& tensor) -> Unpack {
      return [values = numbers(tensor), dims = tensor.dims()] { return with_values(values, dims); };
    });
    y = x * x * x;
  }
  const Tensor first = grad({y}, {x}, {}, {false, true})[0];
  EXPECT_EQ(numbers(first), (Values{12}));
  EXPECT_EQ(numbers(grad({first}, {x})[0]), (Values{12}));
}

TEST(SavedTensorHooks, GiveAnotherShapeOnlyAsAnError) {
  const Tensor x = leaf({2, 3});
  const SavedTensorHooks hooks([](const Tensor&) -> Unpack { return [] { return with_values({1}, {1}); }; });
  EXPECT_EQ(error_of([&] { sum(exp(x)).backward(); }),
            "backward: exp saved a result of f64 [2], and the hook that unpacks it gave f64 [1] on cpu:0.\n"
            "  while computing the gradient of exp");
  const SavedTensorHooks nothing([](const Tensor&) -> Unpack { return [] { return Tensor(); }; });
  EXPECT_EQ(error_of([&] { sum(exp(x)).backward(); }),
            "backward: exp saved a result of f64 [2], and the hook that unpacks it gave an undefined tensor.\n"
            "  while computing the gradient of exp");
}

TEST(SavedTensorHooks, ThatKeepTheTensorLetWritesBeSeen) {
  const Tensor x = leaf({1, 2});
  const SavedTensorHooks hooks([](const Tensor& tensor) -> Unpack { return [tensor] { return tensor; }; });
  Tensor y = x + 1;
  const Tensor z = sum(y * y);
  add_(y, 1);
  EXPECT_NE(error_of([&] { z.backward(); }).find("add has written into that tensor since"), std::string::npos);
  Tensor w = x + 1;
  Tensor v;
  {
    const SavedTensorHooks copies(
        [](const Tensor& tensor) -> Unpack { return [copy = clone(tensor)] { return copy; }; });
    v = sum(w * w);
  }
  add_(w, 1);
  v.backward();
  EXPECT_EQ(numbers(x.grad()), (Values{4, 6})) << "of the elements that mul has seen";
}

TEST(SavedTensorHooks, SeeWhatFunctionsOfTheUserSave) {
  class Square final : public Function {
   public:
    std::string name() const override { return "square"; }
    TensorList forward(const TensorList& inputs) override {
      save(inputs[0]);
      return {inputs[0] * inputs[0]};
    }
    TensorList backward(const TensorList& gradients) override { return {gradients[0] * saved(0) * 2}; }
  };
  const Tensor x = leaf({3});
  int packed = 0;
  const SavedTensorHooks hooks([&packed](const Tensor& tensor) -> Unpack {
    ++packed;
    return [tensor] { return tensor; };
  });
  call_function(std::make_shared<Square>(), {x})[0].backward();
  EXPECT_EQ(packed, 1);
  EXPECT_EQ(numbers(x.grad()), (Values{6}));
}

TEST(SavedTensorHooks, AreRefusedInsideARecording) {
  const Tensor x = leaf({1, 2});
  const auto step = compile([&](const Tensor& y) {
    const SavedTensorHooks hooks([](const Tensor& tensor) -> Unpack { return [tensor] { return tensor; }; });
    return sum(exp(x * y));
  });
  EXPECT_NE(error_of([&] {
              step(with_values({1, 1}, {2}));
            }).find("it saves a tensor inside of SavedTensorHooks, which a recording cannot hold"),
            std::string::npos);
}

TEST(SavedTensorHooks, BelongToTheirThread) {
  const Tensor x = leaf({1});
  int packed = 0;
  const SavedTensorHooks hooks([&packed](const Tensor& tensor) -> Unpack {
    ++packed;
    return [tensor] { return tensor; };
  });
  std::thread([&] { exp(x).backward(); }).join();
  EXPECT_EQ(packed, 0);
}

// ---- checkpoints ----

TEST(Checkpoint, GivesTheSameGradientsAndRunsTheFunctionTwice) {
  const Tensor w = leaf({0.5, -2});
  int runs = 0;
  const auto function = [&](const Tensor& x) {
    ++runs;
    return tanh(x * w) * exp(x);
  };
  const Tensor plain = leaf({1, 2}), kept = leaf({1, 2});
  sum(function(plain)).backward();
  const Values of_w = numbers(w.grad());
  w.set_grad({});
  runs = 0;
  const Tensor result = checkpoint(function)(kept);
  EXPECT_EQ(runs, 1);
  sum(result).backward();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(numbers(kept.grad()), numbers(plain.grad()));
  EXPECT_EQ(numbers(w.grad()), of_w) << "of a tensor that is not an argument";
}

TEST(Checkpoint, KeepsNothingThatItsOpsSave) {
  const Tensor x = leaf({1, 2, 3});
  std::vector<SharedStorage> storages;
  const auto function = [&](const Tensor& input) {
    const Tensor y = exp(input);
    const Tensor z = y * y;
    storages = {y.impl()->storage, z.impl()->storage};
    for (const SharedStorage storage : storages) storage.retain_tensor();
    return sum(sin(z));
  };
  const Tensor plain = function(x);
  EXPECT_GT(storages[0].tensor_count(), 1);
  EXPECT_GT(storages[1].tensor_count(), 1);
  for (const SharedStorage storage : storages) storage.release_tensor();
  const Tensor kept = checkpoint(function)(x);
  for (const SharedStorage storage : storages) {
    EXPECT_EQ(storage.tensor_count(), 1) << "the test's own handle";
    storage.release_tensor();
  }
  storages.clear();
  EXPECT_EQ(numbers(grad({kept}, {x})[0]), numbers(grad({plain}, {x})[0]));
  for (const SharedStorage storage : storages) storage.release_tensor();
}

TEST(Checkpoint, TakesAndGivesLists) {
  const Tensor x = leaf({2}), y = leaf({3});
  const auto function = checkpoint([](const TensorList& in) { return TensorList{in[0] * in[1], exp(in[0])}; });
  const TensorList results = function(TensorList{x, y});
  backward({results[0], results[1]}, {});
  EXPECT_NEAR(numbers(x.grad())[0], 3 + std::exp(2.0), 1e-12);
  EXPECT_EQ(numbers(y.grad()), (Values{2}));
  const auto pair = checkpoint([](const Tensor& a, const Tensor& b) { return TensorList{a * b, a + b}; });
  EXPECT_EQ(pair(x, y).size(), 2u);
}

TEST(Checkpoint, HasGradientsOfSecondOrder) {
  const Tensor x = leaf({2});
  const auto cube = checkpoint([](const Tensor& in) { return in * in * in; });
  const Tensor first = grad({cube(x)}, {x}, {}, {false, true})[0];
  EXPECT_EQ(numbers(first), (Values{12}));
  EXPECT_EQ(numbers(grad({first}, {x})[0]), (Values{12}));
}

TEST(Checkpoint, MayRunBackwardTwiceIfTheGraphIsRetained) {
  const Tensor x = leaf({2});
  const Tensor y = checkpoint([](const Tensor& in) { return exp(in * in); })(x);
  const Values once = numbers(grad({y}, {x}, {}, {true, false})[0]);
  EXPECT_EQ(numbers(grad({y}, {x})[0]), once);
}

TEST(Checkpoint, MayStandInAnother) {
  const Tensor x = leaf({0.3, 0.7});
  int inner_runs = 0, outer_runs = 0;
  const auto inner = checkpoint([&](const Tensor& in) {
    ++inner_runs;
    return exp(sin(in));
  });
  const auto outer = checkpoint([&](const Tensor& in) {
    ++outer_runs;
    return tanh(inner(in * in));
  });
  const Tensor result = sum(outer(x));
  result.backward();
  EXPECT_EQ(outer_runs, 2);
  EXPECT_GE(inner_runs, 3);
  const Tensor plain = leaf({0.3, 0.7});
  sum(tanh(exp(sin(plain * plain)))).backward();
  EXPECT_EQ(numbers(x.grad()), numbers(plain.grad()));
}

TEST(Checkpoint, DrawsTheSameRandomNumbersAgain) {
  const auto function = [](const Tensor& in) { return dropout(in, 0.5) * in; };
  const Tensor plain = ones({64}, DType::f64).requires_grad_(), kept = ones({64}, DType::f64).requires_grad_();
  manual_seed(7);
  const Tensor y = function(plain);
  const Tensor next = rand({4});
  manual_seed(7);
  const Tensor z = checkpoint(function)(kept);
  EXPECT_EQ(numbers(z), numbers(y));
  sum(y).backward();
  sum(z).backward();
  EXPECT_EQ(numbers(kept.grad()), numbers(plain.grad()));
  EXPECT_EQ(numbers(rand({4})), numbers(next)) << "the second run takes no numbers from others";
}

TEST(Checkpoint, RefusesAnArgumentThatWasWritten) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  const Tensor z = sum(checkpoint([](const Tensor& in) { return exp(in); })(y));
  mul_(y, 3);
  EXPECT_EQ(
      error_of([&] { z.backward(); }),
      "backward: checkpoint saved an argument of shape [2] for its gradient, and mul has written into that tensor "
      "since (version 0 was saved, it is version 1 now).\n  while computing the gradient of exp");
}

TEST(Checkpoint, RefusesATensorThatItUsesAndThatWasWritten) {
  const Tensor x = leaf({1, 2});
  Tensor w = with_values({3, 4}, {2});
  const Tensor z = sum(checkpoint([w](const Tensor& in) { return in * w; })(x));
  mul_(w, 3);
  EXPECT_EQ(
      error_of([&] { z.backward(); }),
      "checkpoint: backward runs the function again, which now does something else: a tensor of shape [2] that it "
      "uses was written since, by mul.\n  while computing the gradient of mul");
}

TEST(Checkpoint, RefusesAFunctionThatDoesSomethingElse) {
  const Tensor x = leaf({1, 2});
  int runs = 0;
  const auto changing = [&](const Tensor& in) { return ++runs == 1 ? exp(sin(in)) : sin(in); };
  const Tensor z = sum(checkpoint(changing)(x));
  EXPECT_NE(error_of([&] { z.backward(); }).find("2 tensors were saved at first, and 1 now"), std::string::npos);
  runs = 0;
  const auto growing = [&](const Tensor& in) { return ++runs == 1 ? sin(in) : exp(sin(in)); };
  const Tensor y = sum(checkpoint(growing)(x));
  EXPECT_NE(error_of([&] { y.backward(); }).find("1 tensors were saved at first, and more now"), std::string::npos);
  runs = 0;
  const auto shrinking = [&](const Tensor& in) { return sum(exp(++runs == 1 ? in : slice(in, 0, 0, 1))); };
  const Tensor v = checkpoint(shrinking)(x);
  EXPECT_NE(error_of([&] { v.backward(); }).find("was f64 [2] at first, and is f64 [1] now"), std::string::npos);
}

TEST(Checkpoint, RemembersNothingInsideNoGrad) {
  const Tensor x = leaf({1});
  const NoGrad scope;
  EXPECT_FALSE(checkpoint([](const Tensor& in) { return exp(in); })(x).requires_grad());
}

TEST(Checkpoint, MayBePartOfACompiledStep) {
  const Tensor w = leaf({0.5, -2});
  const auto loss_of = [&](const Tensor& x) {
    return sum(checkpoint([&](const Tensor& in) { return tanh(in * w); })(x));
  };
  auto step = compile([&](const Tensor& x) {
    const Tensor loss = loss_of(x);
    loss.backward();
    return loss;
  });
  const Tensor x = with_values({1, 2}, {2});
  for (int i = 0; i < 3; ++i) step(x);
  const Values three = numbers(w.grad());
  w.set_grad({});
  for (int i = 0; i < 3; ++i) loss_of(x).backward();
  EXPECT_EQ(three, numbers(w.grad()));
}

}  // namespace
}  // namespace tenon
