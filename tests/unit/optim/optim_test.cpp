// Optimisers: their states, saving and loading, parameters that they skip, and steps that are compiled.
#include "core/optim/optim.h"

#include <gtest/gtest.h>

#include "core/compile/compile.h"
#include "core/tensor/generator.h"
#include "core/vm/storage.h"
#include "tests/unit/autograd/numbers.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::optim {
namespace {

Tensor leaf(const Values& values, DType dtype = DType::f64) {
  return cast(with_values(values, {static_cast<int64_t>(values.size())}), dtype).requires_grad_();
}

// One step for the loss sum(p^3) of each parameter.
void descend(Optimizer& optimizer, const TensorList& parameters) {
  optimizer.zero_grad();
  for (const Tensor& p : parameters) sum(p * p * p).backward();
  optimizer.step();
}

TEST(Optimizer, WritesParametersInPlaceAndCountsTheWrites) {
  const Tensor p = leaf({1, 2});
  const TensorImpl* impl = p.impl();
  const uint64_t version = impl->storage.version();
  SGD optimizer({p}, {.lr = 0.5});
  sum(p * 3).backward();
  const Tensor before = exp(p);  // saves its result, not p
  optimizer.step();
  EXPECT_EQ(numbers(p), (Values{-0.5, 0.5}));
  EXPECT_EQ(p.impl(), impl);
  EXPECT_TRUE(p.is_leaf());
  EXPECT_GT(impl->storage.version(), version);
  sum(before).backward();
}

TEST(Optimizer, LetsBackwardSeeThatAParameterWasWritten) {
  const Tensor p = leaf({1, 2});
  AdamW optimizer({p});
  const Tensor loss = sum(p * p);
  backward({loss}, {}, {true, false});
  optimizer.step();
  EXPECT_NE(error_of([&] { loss.backward(); }).find("fused_adamw_ has written into that tensor since"),
            std::string::npos);
}

TEST(Optimizer, LeavesParametersWithoutAGradientAlone) {
  const Tensor p = leaf({1, 2}), q = leaf({3});
  Adam optimizer({p, q}, {.lr = 0.1});
  sum(p).backward();
  optimizer.step();
  EXPECT_EQ(numbers(q), (Values{3}));
  EXPECT_EQ(numbers(optimizer.state().at("0.step")), (Values{1}));
  EXPECT_EQ(numbers(optimizer.state().at("1.step")), (Values{0}));
  optimizer.zero_grad();
  EXPECT_FALSE(p.grad().defined());
  optimizer.step();
  EXPECT_EQ(numbers(optimizer.state().at("0.step")), (Values{1}));
}

TEST(Optimizer, ComputesStridedAndNarrowParametersToo) {
  const Values values{1, -2, 3, -4, 5, -6};
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const Tensor dense = cast(with_values(values, {2, 3}), dtype).requires_grad_();
    const Tensor turned = transpose(cast(with_values({1, -4, -2, 5, 3, -6}, {3, 2}), dtype), 0, 1).requires_grad_();
    ASSERT_FALSE(turned.contiguous());
    AdamW one({dense}, {.lr = 0.1}), other({turned}, {.lr = 0.1});
    for (int i = 0; i < 5; ++i) {
      descend(one, {dense});
      descend(other, {turned});
    }
    const Values a = numbers(dense), b = numbers(turned);
    const double bound = dtype == DType::f64 ? 1e-13 : dtype == DType::f32 ? 1e-6 : 0.05;
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], bound) << dtype_name(dtype);
  }
}

// More elements than one thread takes, compared with steps of parts that one thread takes.
TEST(Optimizer, ComputesManyElementsAsFew) {
  constexpr int64_t part = 300'001, parts = 9;
  Generator random(5);
  const Tensor values = randn({part * parts}, DType::f32, Device(), &random);
  const Tensor gradients = randn({2, part * parts}, DType::f32, Device(), &random);
  const auto steps = [&](auto make, TensorList parameters, int64_t first, int64_t length) {
    auto optimizer = make(parameters);
    for (int64_t step = 0; step < 2; ++step) {
      int64_t at = first;
      for (Tensor& parameter : parameters) {
        parameter.set_grad(contiguous(slice(select(gradients, 0, step), 0, at, at + length)));
        at += length;
      }
      optimizer.step();
    }
    return parameters;
  };
  const auto compare = [&](auto make) {
    const Tensor whole = steps(make, {clone(values).requires_grad_()}, 0, part * parts)[0];
    for (int64_t i = 0; i < parts; ++i) {
      const Tensor some = contiguous(slice(values, 0, i * part, (i + 1) * part)).requires_grad_();
      const Tensor got = steps(make, {some}, i * part, part)[0];
      EXPECT_TRUE(equal(got.detach(), slice(whole.detach(), 0, i * part, (i + 1) * part))) << i;
    }
  };
  compare([](const TensorList& parameters) { return AdamW(parameters, {.lr = 0.1}); });
  compare([](const TensorList& parameters) { return SGD(parameters, {.lr = 0.1, .momentum = 0.9}); });
}

TEST(Optimizer, GoesOnFromAFileAsIfItHadNotStopped) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/optimizer.safetensors";
  const Values p_values{1, -2, 3}, q_values{0.5};
  const Tensor p = leaf(p_values), q = leaf(q_values, DType::f32);
  AdamW optimizer({p, q}, {.lr = 0.05, .amsgrad = true});
  for (int i = 0; i < 4; ++i) descend(optimizer, {p, q});
  descend(optimizer, {p});  // so that the counts of steps differ
  optimizer.set_lr(0.02);
  optimizer.save(path);
  const Tensor p2 = leaf(numbers(p)), q2 = leaf(numbers(q), DType::f32);
  for (int i = 0; i < 3; ++i) descend(optimizer, {p, q});
  AdamW other({p2, q2}, {.lr = 1, .amsgrad = true});
  other.load(path);
  EXPECT_EQ(other.lr(), 0.02);
  for (int i = 0; i < 3; ++i) descend(other, {p2, q2});
  EXPECT_EQ(numbers(p2), numbers(p));
  EXPECT_EQ(numbers(q2), numbers(q));
  EXPECT_EQ(numbers(other.state().at("0.step")), (Values{8}));
  EXPECT_EQ(numbers(other.state().at("1.step")), (Values{7}));
}

TEST(Optimizer, RefusesAStateThatIsNotItsOwn) {
  const ScratchFolder folder;
  const Tensor p = leaf({1, 2});
  SGD momentum({p}, {.momentum = 0.9}), plain({p});
  EXPECT_EQ(error_of([&] { momentum.load_state(plain.state()); }),
            "SGD: the state to load has no '0.momentum_buffer'.");
  EXPECT_EQ(error_of([&] { plain.load_state(momentum.state()); }),
            "SGD: the state to load has the unknown entry '0.momentum_buffer'.");
  SGD longer({leaf({1, 2, 3})}, {.momentum = 0.9});
  EXPECT_EQ(error_of([&] { momentum.load_state(longer.state()); }),
            "SGD: '0.momentum_buffer' of the state to load is f64 [3], not f64 [2].");
  const std::string path = folder.path() + "/x";
  plain.save(path);
  Adam adam({p});
  EXPECT_NE(error_of([&] { adam.load(path); }).find("holds the state of SGD."), std::string::npos);
}

TEST(Optimizer, RefusesWhatIsNoParameterAndNumbersOutOfRange) {
  const Tensor p = leaf({1, 2});
  EXPECT_EQ(error_of([&] { SGD({p * 2}, {.lr = 1}); }), "SGD: parameter 0 is not a leaf that requires a gradient.");
  EXPECT_EQ(error_of([&] { SGD({with_values({1}, {1})}, {.lr = 1}); }),
            "SGD: parameter 0 is not a leaf that requires a gradient.");
  EXPECT_EQ(error_of([&] { SGD({p, p}, {.lr = 1}); }), "SGD: parameter 1 is listed twice.");
  EXPECT_EQ(error_of([&] { SGD(TensorList{}, {.lr = 1}); }), "SGD: there are no parameters.");
  EXPECT_EQ(error_of([&] { SGD({p}, {.lr = -1}); }), "SGD: a learning rate must be at least 0, not -1.");
  EXPECT_EQ(error_of([&] { SGD({p}, {.nesterov = true}); }),
            "SGD: nesterov needs a momentum above 0 and no dampening, not 0 and 0.");
  EXPECT_EQ(error_of([&] { Adam({p}, {.beta1 = 1}); }), "Adam: a beta must be in [0, 1), not 1.");
  EXPECT_EQ(error_of([&] { AdamW({p}, {.weight_decay = -1}); }), "AdamW: a weight decay must be at least 0, not -1.");
}

TEST(Optimizer, StepsInsideOfACompiledFunction) {
  const Values start{0.5, -1, 2};
  const Tensor x = with_values({1, 2, 3}, {3});
  for (const bool adam : {true, false}) {
    const auto optimizer_of = [&](const Tensor& p) -> std::unique_ptr<Optimizer> {
      if (adam) return std::make_unique<AdamW>(TensorList{p}, AdamWOptions{.lr = 0.1});
      return std::make_unique<SGD>(TensorList{p}, SGDOptions{.lr = 0.1, .momentum = 0.9});
    };
    const Tensor eager = leaf(start), compiled = leaf(start);
    const auto eager_optimizer = optimizer_of(eager), compiled_optimizer = optimizer_of(compiled);
    const auto step_of = [&x](const Tensor& p, Optimizer& optimizer) {
      optimizer.zero_grad();
      const Tensor loss = sum(square(p * x - 1));
      loss.backward();
      clip_grad_norm({p}, 5);
      optimizer.step();
      return loss;
    };
    auto step = compile([&](const Tensor&) { return step_of(compiled, *compiled_optimizer); });
    for (int i = 0; i < 8; ++i) {
      if (i == 5) {
        eager_optimizer->set_lr(0.01);
        compiled_optimizer->set_lr(0.01);
      }
      const Values wanted = numbers(step_of(eager, *eager_optimizer)), got = numbers(step(x));
      EXPECT_NEAR(got[0], wanted[0], 1e-12 * (1 + std::abs(wanted[0]))) << "step " << i;
    }
    EXPECT_EQ(step.stats().recordings, 1u);
    const Values a = numbers(eager), b = numbers(compiled);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12);
  }
}

TEST(Clipping, GivesTheNormAndLeavesSmallGradientsAlone) {
  const Tensor p = leaf({3, 4}), q = leaf({0});
  sum(p * p).backward(with_values({0.5}, {}));
  EXPECT_EQ(numbers(clip_grad_norm({p, q}, 10)), (Values{5}));
  EXPECT_EQ(numbers(p.grad()), (Values{3, 4}));
  EXPECT_NEAR(numbers(clip_grad_norm({p, q}, 1))[0], 5, 1e-12);
  EXPECT_NEAR(numbers(p.grad())[0], 0.6, 1e-6);
  EXPECT_EQ(numbers(clip_grad_norm({q}, 1)), (Values{0}));
  EXPECT_EQ(error_of([&] { clip_grad_norm({p}, 1, 0); }), "clip_grad_norm: the norm must be above 0, not 0.");
}

TEST(Schedules, GoOnFromANumberOfSteps) {
  const Tensor p = leaf({1});
  SGD optimizer({{{p}, 0.5, {}}}, {.lr = 1});
  Schedule schedule(optimizer, exponential(0.5));
  for (int i = 0; i < 3; ++i) schedule.step();
  EXPECT_EQ(optimizer.lr(), 0.0625);
  schedule.go_to(1);
  EXPECT_EQ(optimizer.lr(), 0.25);
  EXPECT_EQ(schedule.steps(), 1);
}

TEST(Schedules, RefuseNumbersOfStepsThatAreNone) {
  EXPECT_EQ(error_of([] { cosine(0); }), "cosine: it needs at least 1 step, not 0.");
  EXPECT_EQ(error_of([] { sequence({cosine(5)}, {3}); }),
            "sequence: 1 curves are given with 1 steps at which the next one begins; there must be one step fewer "
            "than curves, in ascending order.");
}

}  // namespace
}  // namespace tenon::optim
