// Gradients: whole steps, results that require gradients, gradients that leaves keep; training, eager and compiled.
#include <numeric>

#include "core/tensor/generator.h"
#include "tests/unit/compile/values.h"

namespace tenon {
namespace {

Tensor shifted(const Dims& dims, uint32_t seed, double reach) {
  const NoGrad scope;
  return (random_tensor(dims, seed) - 1.25) * (reach / 0.75);
}

TensorList leaves_of(const std::vector<Dims>& shapes, double reach) {
  TensorList leaves;
  for (size_t i = 0; i < shapes.size(); ++i) {
    leaves.push_back(shifted(shapes[i], static_cast<uint32_t>(i + 1), reach).requires_grad_());
  }
  return leaves;
}

struct Net {
  const char* name;
  std::vector<Dims> shapes;
  double reach;
  double rate;
  TensorList batch;
  std::function<Tensor(const TensorList& parameters, const TensorList& batch)> loss;
};

std::ostream& operator<<(std::ostream& out, const Net& net) { return out << net.name; }

Net two_layers() {
  const Tensor x = shifted({16, 3}, 20, 1);
  return {"TwoLayers",
          {{3, 4}, {4}, {4, 1}},
          0.7,
          0.2,
          {x, sin(sum(x, 1, true) * 2)},
          [](const TensorList& p, const TensorList& in) {
            return mean(square(matmul(tanh(matmul(in[0], p[0]) + p[1]), p[2]) - in[1]));
          }};
}

// Pictures of a horizontal or vertical bar.
Net convolutional() {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> noise(-0.2f, 0.2f);
  std::vector<float> pixels(16 * 64);
  std::vector<int64_t> classes;
  for (float& pixel : pixels) pixel = noise(random);
  for (size_t picture = 0; picture < 16; ++picture) {
    const size_t at = random() % 8;
    for (size_t i = 0; i < 8; ++i) pixels[picture * 64 + (picture % 2 == 0 ? i * 8 + at : at * 8 + i)] += 1;
    classes.push_back(static_cast<int64_t>(picture % 2));
  }
  return {"Convolutional",
          {{4, 1, 3, 3}, {4}, {6, 4, 3, 3}, {6}, {2, 6}, {2}},
          0.4,
          0.3,
          {Tensor::from<float>(pixels, {16, 1, 8, 8}), Tensor::from<int64_t>(classes, {16, 1})},
          [](const TensorList& p, const TensorList& in) {
            Tensor h = max_pool(relu(conv(in[0], p[0], p[1], 1, 1)), 2);
            h = relu(conv(h, p[2], p[3], 1, 1));
            return -mean(gather(log_softmax(linear(mean(h, {2, 3}), p[4], p[5]), 1), 1, in[1]));
          }};
}

// One block with attention, norms and an MLP learns which token came first.
Net transformer() {
  std::mt19937 random(5);
  std::vector<int64_t> tokens, first;
  for (int sequence = 0; sequence < 12; ++sequence) {
    for (int t = 0; t < 5; ++t) tokens.push_back(static_cast<int64_t>(random() % 6));
    for (int t = 0; t < 5; ++t) first.push_back(tokens[static_cast<size_t>(sequence) * 5]);
  }
  return {"Transformer",
          {{6, 8}, {5, 8}, {8}, {24, 8}, {8, 8}, {8}, {16, 8}, {16}, {8, 16}, {8}, {6, 8}},
          0.5,
          0.3,
          {Tensor::from<int64_t>(tokens, {12, 5}), Tensor::from<int64_t>(first, {12, 5, 1})},
          [](const TensorList& p, const TensorList& in) {
            Tensor x = embedding(p[0], in[0]) + p[1];
            const TensorList qkv = chunk(linear(rms_norm(x, 8, p[2]), p[3]), 3, -1);
            const auto heads = [](const Tensor& t) { return transpose(reshape(t, {12, 5, 2, 4}), 1, 2); };
            const Tensor attended = scaled_dot_product_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), {}, true);
            x = x + linear(reshape(transpose(attended, 1, 2), {12, 5, 8}), p[4]);
            x = x + linear(gelu(linear(layer_norm(x, 8, p[5]), p[6], p[7])), p[8], p[9]);
            return -mean(gather(log_softmax(linear(x, p[10]), -1), -1, in[1]));
          }};
}

class Nets : public ::testing::TestWithParam<Net> {
 protected:
  static Tensor step(const TensorList& parameters, const TensorList& batch) {
    const Net& net = GetParam();
    const Tensor loss = net.loss(parameters, batch);
    loss.backward();
    descend(parameters);
    return loss;
  }
  static void descend(const TensorList& parameters) {
    const NoGrad scope;
    for (Tensor parameter : parameters) {
      sub_(parameter, parameter.grad() * GetParam().rate);
      parameter.set_grad({});
    }
  }
  static constexpr int kSteps = 60;
};

TEST_P(Nets, LearnAsOneProgramWithTheLossesOfTheEagerRun) {
  const Net& net = GetParam();
  const TensorList eager = leaves_of(net.shapes, net.reach), compiled = leaves_of(net.shapes, net.reach);
  int calls = 0;
  auto train = compile(
      [&](const TensorList& batch) {
        ++calls;
        return step(compiled, batch);
      },
      {.name = "train", .exact = true});
  float first = 0, last = 0;
  for (int i = 0; i < kSteps; ++i) {
    const std::vector<float> expected = elements(step(eager, net.batch));
    last = expected[0];
    if (i == 0) first = last;
    ASSERT_EQ(elements(train(net.batch)), expected) << "step " << i;
  }
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_EQ(elements(compiled[i]), elements(eager[i])) << "parameter " << i;
  EXPECT_LT(last, first);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(train.stats().recordings, 1u);
}

TEST_P(Nets, LearnByTheGradientOfACompiledForward) {
  const Net& net = GetParam();
  const TensorList eager = leaves_of(net.shapes, net.reach), compiled = leaves_of(net.shapes, net.reach);
  int calls = 0;
  auto forward = compile(
      [&](const TensorList& batch) {
        ++calls;
        return net.loss(compiled, batch);
      },
      {.name = "forward", .exact = true});
  for (int i = 0; i < kSteps; ++i) {
    const std::vector<float> expected = elements(step(eager, net.batch));
    const Tensor loss = forward(net.batch);
    ASSERT_EQ(elements(loss), expected) << "step " << i;
    EXPECT_TRUE(loss.requires_grad());
    loss.backward();
    descend(compiled);
  }
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_EQ(elements(compiled[i]), elements(eager[i])) << "parameter " << i;
  EXPECT_EQ(calls, 2);
}

TEST_P(Nets, LearnWithPassesThatMoveBits) {
  const Net& net = GetParam();
  const TensorList eager = leaves_of(net.shapes, net.reach), compiled = leaves_of(net.shapes, net.reach);
  auto train = compile([&](const TensorList& batch) { return step(compiled, batch); });
  for (int i = 0; i < 20; ++i) {
    EXPECT_NEAR(elements(train(net.batch))[0], elements(step(eager, net.batch))[0], 1e-3) << "step " << i;
  }
}

TEST_P(Nets, LearnWithRandomMasks) {
  const Net& net = GetParam();
  const auto masked = [&](const TensorList& parameters, const TensorList& batch) {
    TensorList dropped = parameters;
    dropped[0] = dropout(parameters[0], 0.3, true);
    const Tensor loss = net.loss(dropped, batch);
    loss.backward();
    descend(parameters);
    return loss;
  };
  const auto losses_of = [&](const TensorList& parameters, const std::function<Tensor(const TensorList&)>& train) {
    manual_seed(5);
    std::vector<std::vector<float>> losses;
    for (int i = 0; i < 20; ++i) losses.push_back(elements(train(net.batch)));
    for (const Tensor& parameter : parameters) losses.push_back(elements(parameter));
    return losses;
  };
  const TensorList eager = leaves_of(net.shapes, net.reach), compiled = leaves_of(net.shapes, net.reach);
  auto train = compile([&](const TensorList& batch) { return masked(compiled, batch); }, {.exact = true});
  EXPECT_EQ(losses_of(compiled, [&](const TensorList& batch) { return train(batch); }),
            losses_of(eager, [&](const TensorList& batch) { return masked(eager, batch); }));
  EXPECT_EQ(train.stats().recordings, 1u);
}

INSTANTIATE_TEST_SUITE_P(All, Nets, ::testing::Values(two_layers(), convolutional(), transformer()),
                         [](const ::testing::TestParamInfo<Net>& info) { return std::string(info.param.name); });

TEST(CompiledGradient, ReachesArgumentsAndCapturedLeaves) {
  const Tensor w = random_tensor({4, 2}, 1).requires_grad_();
  auto forward = compile([&](const Tensor& x) { return tanh(matmul(x, w)); }, {.exact = true});
  const auto gradients = [&](const std::function<Tensor(const Tensor&)>& function, uint32_t seed) {
    const Tensor leaf = random_tensor({3, 4}, seed).requires_grad_();
    const Tensor loss = sum(function(exp(leaf)) * random_tensor({3, 2}, 9));  // the argument is not a leaf
    const TensorList found = grad({loss}, {leaf, w});
    return std::vector{elements(loss), elements(found[0]), elements(found[1])};
  };
  for (uint32_t seed = 0; seed < 4; ++seed) {
    EXPECT_EQ(gradients([&](const Tensor& x) { return forward(x); }, seed),
              gradients([&](const Tensor& x) { return tanh(matmul(x, w)); }, seed));
  }
}

TEST(CompiledGradient, IsRightAtOtherSizes) {
  const Tensor w = random_tensor({4}, 1).requires_grad_(), b = random_tensor({4}, 2).requires_grad_();
  const auto function = [&](const Tensor& x) { return tanh(x * w + b); };
  auto forward = compile(function, {.exact = true});
  const auto gradients = [&](const std::function<Tensor(const Tensor&)>& call, int64_t rows) {
    const Tensor x = random_tensor({rows, 4}, 3);
    const TensorList found = grad({sum(square(call(x)))}, {w, b});
    return std::vector{elements(found[0]), elements(found[1])};
  };
  for (int64_t rows : {3, 5, 2, 16, 5, 3}) {
    EXPECT_EQ(gradients([&](const Tensor& x) { return forward(x); }, rows), gradients(function, rows)) << rows;
  }
}

TEST(CompiledGradient, OfSeveralResultsOfWhichOneIsUsed) {
  const Tensor w = random_tensor({3}, 1).requires_grad_();
  auto forward = compile(
      [&](const Tensor& x) -> TensorList {
        return {x * w, exp(w), cast(w * 4.0, DType::i32)};
      },
      {.exact = true});
  const Tensor x = random_tensor({3}, 2);
  for (int i = 0; i < 3; ++i) {
    const TensorList out = forward(x);
    EXPECT_FALSE(out[2].requires_grad());
    EXPECT_EQ(elements(grad({sum(out[1])}, {w})[0]), elements(exp(w)));
    const TensorList again = forward(x);
    EXPECT_EQ(elements(grad({sum(again[0]), sum(again[1])}, {w})[0]), elements(x + exp(w)));
  }
}

// An unused result passes on no gradient, not even zero times an infinite factor. A leaf that only it depends on gets
// none.
TEST(CompiledGradient, OfAnUnusedResultIsNone) {
  const Tensor w = zeros({3}).requires_grad_(), v = random_tensor({3}, 1).requires_grad_();
  const auto function = [&](const Tensor& x) -> TensorList {
    const TensorList parts = chunk(concat({x * w, exp(w)}), 2);
    return {parts[0] * 2.0, sqrt(w) * v, parts[1] + w};
  };
  auto forward = compile(function, {.exact = true});
  const Tensor x = random_tensor({3}, 2);
  for (int i = 0; i < 3; ++i) {
    for (size_t used : {0u, 2u}) {
      const GradOptions options{.allow_unused = true};
      const TensorList expected = grad({sum(function(x)[used])}, {w, v}, {}, options);
      const TensorList found = grad({sum(forward(x)[used])}, {w, v}, {}, options);
      EXPECT_EQ(elements(found[0]), elements(expected[0]));
      EXPECT_FALSE(found[1].defined());
    }
  }
}

TEST(CompiledGradient, IsRefusedOnlyForTheResultThatHasNone) {
  const Tensor w = random_tensor({3}, 1).requires_grad_();
  auto forward = compile(
      [&](const Tensor& x) -> TensorList {
        Tensor kept = exp(x * w);
        const Tensor lost = kept * kept;
        add_(kept, 1.0);
        return {lost, x * w};
      },
      {.exact = true});
  const Tensor x = random_tensor({3}, 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(contains(error_of([&] { sum(forward(x)[0]).backward(); }), "add has written into that tensor since"));
    EXPECT_EQ(elements(grad({sum(forward(x)[1])}, {w})[0]), elements(x));
  }
}

TEST(CompiledGradient, IsNeverWrongWhereSavedTensorsWereWritten) {
  Tensor w = random_tensor({3}, 1).requires_grad_();
  auto forward = compile([&](const Tensor& x) { return sum(x * square(w)); }, {.name = "forward"});
  const Tensor x = random_tensor({3}, 2);
  for (int i = 0; i < 3; ++i) {
    const Tensor loss = forward(x);
    {
      const NoGrad scope;
      add_(w, 1.0);
    }
    const std::string text = error_of([&] { loss.backward(); });
    EXPECT_TRUE(contains(text, "forward saved a tensor of shape [3]"));
    EXPECT_TRUE(contains(text, "add has written"));
  }
}

TEST(CompiledGradient, InsideARecordingSeesWritesToo) {
  const Tensor w = random_tensor({3}, 1).requires_grad_();
  auto step = compile([&](const Tensor& x) {
    const Tensor y = exp(x * w);
    const Tensor loss = sum(y * y);
    {
      const NoGrad scope;
      Tensor changed = y.detach();
      add_(changed, 1.0);
    }
    loss.backward();
    return loss;
  });
  EXPECT_TRUE(contains(error_of([&] { step(random_tensor({3}, 2)); }), "add has written into that tensor since"));
  EXPECT_FALSE(w.grad().defined()) << "a recording that failed left a gradient";
}

TEST(CompiledGradient, OfAResultWhoseGraphIsUsedUpIsTheErrorOfTheEagerRun) {
  const Tensor w = random_tensor({3}, 1).requires_grad_();
  auto step = compile([&](const Tensor& x) {
    const Tensor loss = sum(square(x * w));
    loss.backward();
    w.set_grad({});
    return loss;
  });
  for (int i = 0; i < 3; ++i) {
    const Tensor loss = step(random_tensor({3}, 2));
    EXPECT_TRUE(loss.requires_grad());
    EXPECT_TRUE(contains(error_of([&] { loss.backward(); }), "was freed by an earlier backward"));
  }
}

// Gradients that stay on the leaves are state: undefined at first, accumulated into afterwards, replaced by the caller.
TEST(CompiledGradient, AccumulatesAsTheEagerRunDoes) {
  const Tensor a = random_tensor({3}, 1).requires_grad_(), b = a.detach().requires_grad_();
  const auto function = [](const Tensor& w, const Tensor& x) {
    const Tensor loss = sum(square(x * w));
    loss.backward();
    return w.grad() * 2.0;
  };
  auto step = compile([&](const Tensor& x) { return function(a, x); }, {.exact = true});
  for (uint32_t i = 0; i < 12; ++i) {
    const Tensor x = random_tensor({3}, i + 3);
    if (i % 4 == 0) {
      a.set_grad({});
      b.set_grad({});
    }
    if (i % 4 == 2) {
      a.set_grad(random_tensor({3}, i));
      b.set_grad(random_tensor({3}, i));
    }
    EXPECT_EQ(elements(step(x)), elements(function(b, x))) << "call " << i;
    EXPECT_EQ(elements(a.grad()), elements(b.grad())) << "call " << i;
  }
  EXPECT_EQ(step.stats().recordings, 2u) << "without a gradient, and with one";
}

TEST(CompiledGradient, OfAnArgumentThatIsALeafGoesThere) {
  auto step = compile([](const Tensor& x) {
    sum(exp(x)).backward();
    return x.grad() * 1.0;
  });
  for (uint32_t i = 0; i < 4; ++i) {
    const Tensor x = random_tensor({3}, i).requires_grad_();
    const Tensor out = step(x);
    EXPECT_EQ(elements(x.grad()), elements(exp(x)));
    EXPECT_EQ(elements(out), elements(exp(x)));
  }
  const Tensor made = exp(random_tensor({3}, 9).requires_grad_());
  EXPECT_TRUE(contains(error_of([&] { step(made); }), "computed outside of the function"));
}

TEST(CompiledGradient, RefusesWhatItCannotPassOn) {
  const Tensor w = random_tensor({3}, 1).requires_grad_(), x = random_tensor({3}, 2);
  Tensor state = random_tensor({3}, 3);
  auto keeps = compile([&](const Tensor& in) { return copy_(state, in * w) * 2.0; }, {.name = "keeps"});
  EXPECT_TRUE(
      contains(error_of([&] { keeps(x); }), "keeps: a tensor of shape [3] from outside is overwritten with one"));
  EXPECT_FALSE(state.requires_grad());
  auto frozen = compile([&](const Tensor& in) { return in * w; }, {.name = "frozen", .frozen = {w}});
  EXPECT_TRUE(contains(error_of([&] { frozen(x); }), "frozen: a frozen tensor of shape [3] requires a gradient"));
}

TEST(CompiledGradient, ReachesWhatOpsMadeOutside) {
  const Tensor w = random_tensor({3}, 1).requires_grad_();
  const TensorList parts = chunk(exp(concat({w, w * 2.0})), 2);
  const auto function = [&](const Tensor& x) { return sum(x * parts[0] + w * square(parts[1])); };
  auto compiled = compile(function, {.exact = true});
  for (uint32_t seed = 2; seed < 6; ++seed) {
    const Tensor x = random_tensor({3}, seed);
    const GradOptions options{.retain_graph = true};
    const TensorList to{w, parts[0], parts[1]};
    const TensorList expected = grad({function(x)}, to, {}, options), found = grad({compiled(x)}, to, {}, options);
    for (size_t i = 0; i < to.size(); ++i) EXPECT_EQ(elements(found[i]), elements(expected[i])) << i;
  }
  EXPECT_EQ(compiled.stats().recordings, 1u);
}

TEST(CompiledGradient, StopsInsideARecordingAtWhatOpsMadeOutside) {
  const Tensor w = random_tensor({3}, 1).requires_grad_(), made = exp(w), x = random_tensor({3}, 2);
  auto inside = compile([&](const Tensor& in) { return grad({sum(square(in * made))}, {made})[0]; }, {.exact = true});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(elements(inside(x)), elements(grad({sum(square(x * made))}, {made}, {}, {.retain_graph = true})[0]));
  }
  auto beyond = compile([&](const Tensor& in) {
    const Tensor loss = sum(in * made);
    loss.backward();
    return loss;
  });
  EXPECT_TRUE(contains(error_of([&] { beyond(x); }), "it reaches a tensor that exp made outside of the function"));
  EXPECT_FALSE(w.grad().defined());
}

TEST(CompiledGradient, FollowsRequiresGradOfCaptures) {
  const Tensor w = random_tensor({3}, 1);
  auto forward = compile([&](const Tensor& x) { return x * w; });
  const Tensor x = random_tensor({3}, 2);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(forward(x).requires_grad());
  w.requires_grad_();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(forward(x).requires_grad());
  w.requires_grad_(false);
  EXPECT_FALSE(forward(x).requires_grad());
  EXPECT_EQ(forward.stats().recordings, 2u);
}

// A hook that is added later is not part of the recording. If backward is inside the function, the call is then
// refused.
TEST(CompiledGradient, FollowsHooksOfLeaves) {
  const Tensor x = random_tensor({3}, 1), w = random_tensor({3}, 2).requires_grad_();
  auto forward = compile([&](const Tensor& given) { return sum(given * w); });
  auto backward = compile([&](const Tensor& given) { return grad({sum(given * w)}, {w})[0]; });
  const auto gradient = [&] {
    w.set_grad({});
    forward(x).backward();
    return elements(w.grad());
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(elements(backward(x)), gradient());
  HookHandle handle = register_hook(w, [](const Tensor& g) { return g * 5.0; });
  const std::vector<float> changed = elements(x * 5.0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(gradient(), changed);
    EXPECT_TRUE(contains(error_of([&] { backward(x); }), "has a hook, which a recording cannot hold"));
  }
  handle.remove();
  EXPECT_EQ(elements(backward(x)), elements(x));
  EXPECT_EQ(gradient(), elements(x));
  EXPECT_EQ(forward.stats().recordings, 2u);
}

TEST(CompiledGradient, OfMoreThan64Leaves) {
  TensorList weights;
  for (uint32_t i = 0; i < 150; ++i) weights.push_back(random_tensor({2}, i).requires_grad_());
  auto forward = compile([&](const Tensor& x) {
    Tensor total = x;
    for (size_t i = 0; i < weights.size(); ++i) total = total + weights[i] * static_cast<double>(i + 1);
    return sum(total);
  });
  for (int call = 0; call < 3; ++call) {
    forward(random_tensor({2}, 1)).backward();
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto value = static_cast<float>(i + 1);
      EXPECT_EQ(elements(weights[i].grad()), (std::vector<float>{value, value}));
      weights[i].set_grad({});
    }
  }
}

}  // namespace
}  // namespace tenon
