// Values that backward recomputes: gradients keep their bits, forward saves less, and a limit of memory is met, or
// refused with the least possible limit.
#include <charconv>

#include "core/graph/regions/control_flow.h"
#include "core/tensor/device.h"
#include "core/tensor/generator.h"
#include "tests/unit/compile/values.h"

namespace tenon {
namespace {

constexpr int64_t kWidth = 64, kLength = 32, kBatch = 16, kHeads = 4;

using Loss = std::function<Tensor(const TensorList& parameters, const Tensor& x)>;

struct Net {
  const char* name;
  std::vector<Dims> shapes;
  Dims input;
  Loss loss;
  double saved = 1;             // the part of the saved bytes that is left without a limit, at most
  double limit = 1;             // a limit that can be met, as a part of the bytes that live at once
  bool between_kernels = true;  // even without a limit, values between the kernels of a whole step are recomputed
};

std::ostream& operator<<(std::ostream& out, const Net& net) { return out << net.name; }

Tensor linear_of(const Tensor& x, const TensorList& p, size_t i) { return linear(x, p[i], p[i + 1]); }

Tensor perceptron(const TensorList& p, const Tensor& input) {
  Tensor x = linear_of(input, p, 0);
  for (size_t at = 2; at < p.size(); at += 2) x = linear_of(gelu(x), p, at);
  return mean(square(x));
}

// Its products take so long that recomputing the values between them costs almost nothing.
Net wide() { return {"Wide", {{1024, 1024}, {1024}, {1024, 1024}, {1024}}, {16, 1024}, perceptron, 0.7, 1}; }

// Its values need more memory than its parameters.
Net deep() {
  std::vector<Dims> shapes;
  for (int layer = 0; layer < 8; ++layer) {
    shapes.push_back({32, 32});
    shapes.push_back({32});
  }
  return {"Deep", shapes, {256, 32}, perceptron, 1, 0.65, false};
}

// Two blocks of attention and a perceptron of gelu, each after a layer norm. Compilers evaluate arguments in different
// orders, so nodes are in different orders: with one compiler the greedy choice reaches 0.6, with another 0.67.
Net transformer() {
  std::vector<Dims> shapes;
  for (int block = 0; block < 2; ++block) {
    const std::vector<Dims> more{
        {kWidth}, {kWidth}, {3 * kWidth, kWidth}, {3 * kWidth}, {kWidth, kWidth},     {kWidth},
        {kWidth}, {kWidth}, {4 * kWidth, kWidth}, {4 * kWidth}, {kWidth, 4 * kWidth}, {kWidth}};
    shapes.insert(shapes.end(), more.begin(), more.end());
  }
  return {"Transformer",
          shapes,
          {kBatch, kLength, kWidth},
          [](const TensorList& p, const Tensor& input) {
            Tensor x = input;
            const auto heads = [](const Tensor& t) {
              return transpose(reshape(t, {kBatch, kLength, kHeads, kWidth / kHeads}), 1, 2);
            };
            for (size_t at = 0; at < p.size(); at += 12) {
              const TensorList qkv = chunk(linear_of(layer_norm(x, kWidth, p[at], p[at + 1]), p, at + 2), 3, -1);
              const Tensor attended =
                  scaled_dot_product_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), {}, true);
              x = x + linear_of(reshape(transpose(attended, 1, 2), {kBatch, kLength, kWidth}), p, at + 4);
              const Tensor hidden = gelu(linear_of(layer_norm(x, kWidth, p[at + 6], p[at + 7]), p, at + 8));
              x = x + linear_of(hidden, p, at + 10);
            }
            return mean(square(x));
          },
          0.95,
          0.7};
}

TensorList leaves_of(const Net& net) {
  TensorList leaves;
  for (size_t i = 0; i < net.shapes.size(); ++i) {
    const NoGrad scope;
    leaves.push_back((random_tensor(net.shapes[i], static_cast<uint32_t>(i + 1)) - 1.25) * 0.2);
    leaves.back().requires_grad_();
  }
  return leaves;
}

std::vector<std::vector<float>> gradients(const std::function<Tensor(const Tensor&)>& loss, const TensorList& leaves,
                                          const Tensor& x) {
  std::vector<std::vector<float>> all;
  const Tensor value = loss(x);
  all.push_back(elements(value));
  for (const Tensor& gradient : grad({value}, leaves)) all.push_back(elements(gradient));
  return all;
}

uint64_t number_after(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  uint64_t number = 0;
  if (at != std::string::npos) std::from_chars(text.data() + at + words.size(), text.data() + text.size(), number);
  return number;
}

class Recompute : public ::testing::TestWithParam<Net> {};
class RecomputeLimited : public ::testing::TestWithParam<Net> {};

TEST_P(Recompute, WithoutALimitKeepsTheBitsOfGradientsAndSavesLess) {
  const Net& net = GetParam();
  const TensorList leaves = leaves_of(net);
  const auto eager = [&](const Tensor& x) { return net.loss(leaves, x); };
  auto again = compile(eager, {.exact = true});
  auto kept = compile(eager, {.exact = true, .recompute = false});
  for (uint32_t call = 0; call < 3; ++call) {
    const Tensor x = random_tensor(net.input, 90 + call);
    const auto expected = gradients(eager, leaves, x);
    EXPECT_EQ(gradients([&](const Tensor& in) { return again(in); }, leaves, x), expected);
    EXPECT_EQ(gradients([&](const Tensor& in) { return kept(in); }, leaves, x), expected);
  }
  const CompileMemory memory = again.memory().front();
  EXPECT_FALSE(memory.again.empty());
  EXPECT_LE(static_cast<double>(memory.saved), net.saved * static_cast<double>(memory.saved_before)) << memory.again;
}

TEST_P(RecomputeLimited, UnderALimitKeepsTheBitsOfGradients) {
  const Net& net = GetParam();
  const TensorList leaves = leaves_of(net);
  const auto eager = [&](const Tensor& x) { return net.loss(leaves, x); };
  const Tensor x = random_tensor(net.input, 90);
  auto first = compile(eager, {.exact = true});
  first(x);
  const auto limit = static_cast<uint64_t>(net.limit * static_cast<double>(first.memory().front().live_before));
  for (const bool exact : {true, false}) {
    auto limited = compile(eager, {.exact = exact, .memory_limit = limit});
    for (int call = 0; call < 3; ++call) {
      const auto expected = gradients(eager, leaves, x);
      const auto found = gradients([&](const Tensor& in) { return limited(in); }, leaves, x);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        for (size_t k = 0; k < found[i].size(); ++k) {
          ASSERT_NEAR(found[i][k], expected[i][k], exact ? 0 : 1e-4 * (1 + std::fabs(expected[i][k]))) << i << "," << k;
        }
      }
    }
    EXPECT_LE(limited.memory().front().live, limit);
    EXPECT_LT(limited.memory().front().saved, limit);
  }
}

auto step_of(const Net& net, const TensorList& leaves) {
  return [&net, leaves](const Tensor& in) {
    const Tensor loss = net.loss(leaves, in);
    descend(loss, leaves, 0.1);
    return loss;
  };
}

// A whole step is one program: there is no separate backward for which values are kept.
TEST_P(RecomputeLimited, OfAWholeStepKeepsItsBits) {
  const Net& net = GetParam();
  const Tensor x = random_tensor(net.input, 90);
  const TensorList eager = leaves_of(net), kept = leaves_of(net), again = leaves_of(net), fused = leaves_of(net);
  auto first = compile(step_of(net, kept), {.exact = true});
  first(x);
  const auto limit = static_cast<uint64_t>(net.limit * static_cast<double>(first.memory().front().live_before));
  auto limited = compile(step_of(net, again), {.exact = true, .memory_limit = limit});
  auto limited_fused = compile(step_of(net, fused), {.fuse = true, .memory_limit = limit});
  for (int i = 0; i < 5; ++i) {
    const std::vector<float> expected = elements(step_of(net, eager)(x));
    EXPECT_EQ(elements(limited(x)), expected) << "step " << i;
    EXPECT_NEAR(elements(limited_fused(x))[0], expected[0], 1e-4 * expected[0]) << "step " << i;
  }
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_EQ(elements(again[i]), elements(eager[i])) << "parameter " << i;
  EXPECT_LE(limited.memory().front().live, limit);
  EXPECT_FALSE(limited.memory().front().again.empty());
  EXPECT_LE(limited_fused.memory().front().live, limit);
}

// Also without a limit, and then fewer bytes are allocated.
TEST_P(RecomputeLimited, AWholeStepComputesAgainByItself) {
  const Net& net = GetParam();
  const Tensor x = random_tensor(net.input, 90);
  for (const bool exact : {true, false}) {
    const TensorList eager = leaves_of(net), first = leaves_of(net), second = leaves_of(net);
    const std::optional<bool> fuse = exact ? std::nullopt : std::optional(true);
    auto kept =
        compile(step_of(net, first), {.exact = exact, .fuse = fuse, .compile = Compiling::wait, .recompute = false});
    auto again = compile(step_of(net, second), {.exact = exact, .fuse = fuse, .compile = Compiling::wait});
    for (int i = 0; i < 5; ++i) {
      const float expected = elements(step_of(net, eager)(x))[0];
      EXPECT_NEAR(elements(kept(x))[0], expected, exact ? 0 : 1e-4 * expected) << "step " << i;
      EXPECT_NEAR(elements(again(x))[0], expected, exact ? 0 : 1e-4 * expected) << "step " << i;
    }
    for (size_t i = 0; exact && i < eager.size(); ++i) EXPECT_EQ(elements(second[i]), elements(eager[i])) << i;
    EXPECT_EQ(kept.memory().front().again, "");
    const CompileMemory memory = again.memory().front();
    const uint64_t planned = kept.memory().front().planned;
    if (exact || net.between_kernels) {
      EXPECT_NE(memory.again, "");
      EXPECT_LT(memory.planned, planned);
      EXPECT_LT(memory.live, memory.live_before);
    } else {
      EXPECT_EQ(memory.again, "");
      EXPECT_EQ(memory.planned, planned);
    }
  }
}

TEST_P(RecomputeLimited, NamesTheLeastThatALimitCanBe) {
  const Net& net = GetParam();
  const TensorList leaves = leaves_of(net);
  const auto loss = [&](const Tensor& x) { return net.loss(leaves, x); };
  const Tensor x = random_tensor(net.input, 90);
  auto refused = compile(loss, {.name = "tight", .memory_limit = 1});
  const std::string text = error_of([&] { refused(x); });
  EXPECT_TRUE(contains(text, "tight"));
  EXPECT_TRUE(contains(text, "and the limit is 1 bytes"));
  const uint64_t least = number_after(text, "its values take at least ");
  ASSERT_GT(least, 1u) << text;
  EXPECT_TRUE(contains(error_of([&] { compile(loss, {.memory_limit = least - 1})(x); }), "its values take at least"));
  auto met = compile(loss, {.memory_limit = least});
  met(x);
  EXPECT_EQ(met.memory().front().live, least);
}

std::string name_of(const ::testing::TestParamInfo<Net>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(All, Recompute, ::testing::Values(wide(), transformer()), name_of);
INSTANTIATE_TEST_SUITE_P(All, RecomputeLimited, ::testing::Values(deep(), transformer()), name_of);

// The same random numbers drop elements in forward and in the recomputation.
TEST(RecomputeOnce, DropsTheSameElements) {
  const Tensor w = random_tensor({64, 64}, 1).requires_grad_();
  const auto function = [&](const Tensor& x) {
    Tensor h = x;
    for (int i = 0; i < 4; ++i) h = dropout(tanh(matmul(gelu(h), w) * 0.01), 0.5, true);
    return sum(square(h));
  };
  const Tensor x = random_tensor({32, 64}, 2);
  const auto seen = [&](const std::function<Tensor(const Tensor&)>& loss) {
    manual_seed(3);
    std::vector<std::vector<std::vector<float>>> all;
    for (int call = 0; call < 3; ++call) all.push_back(gradients(loss, {w}, x));
    return all;
  };
  auto first = compile(function, {.exact = true});
  first(x);
  auto limited = compile(function, {.exact = true, .memory_limit = first.memory().front().live_before * 9 / 10});
  EXPECT_EQ(seen([&](const Tensor& in) { return limited(in); }), seen(function));
  EXPECT_FALSE(limited.memory().front().again.empty());
  EXPECT_FALSE(contains(limited.memory().front().again, "philox"));
}

TEST(RecomputeOnce, AWholeStepDropsTheSameElements) {
  const Tensor x = random_tensor({256, 64}, 2);
  const auto step = [&](const TensorList& leaves) {
    return [leaves](const Tensor& in) {
      Tensor h = in;
      for (int i = 0; i < 4; ++i) h = dropout(tanh(matmul(gelu(h), leaves[0]) * 0.01), 0.5, true);
      const Tensor loss = sum(square(h));
      descend(loss, leaves, 0.001);
      return loss;
    };
  };
  const auto leaves = [] { return TensorList{random_tensor({64, 64}, 1).requires_grad_()}; };
  const TensorList eager = leaves(), compiled = leaves(), unused = leaves();
  auto first = compile(step(unused), {.exact = true, .recompute = false});
  first(x);
  auto limited = compile(step(compiled), {.exact = true, .memory_limit = first.memory().front().live_before * 8 / 10});
  const auto seen = [&](const std::function<Tensor(const Tensor&)>& run) {
    manual_seed(3);
    std::vector<std::vector<float>> all;
    for (int i = 0; i < 4; ++i) all.push_back(elements(run(x)));
    return all;
  };
  EXPECT_EQ(seen([&](const Tensor& in) { return limited(in); }), seen(step(eager)));
  EXPECT_EQ(elements(compiled[0]), elements(eager[0]));
  EXPECT_FALSE(limited.memory().front().again.empty());
  EXPECT_LT(limited.memory().front().planned, first.memory().front().planned);
}

// A gradient is added to its parameter as soon as it is ready, so not all gradients live at once.
TEST(RecomputeOnce, AGradientLivesUntilItsParameterIsWritten) {
  constexpr size_t kLayers = 8, kWide = 128;
  const Tensor x = random_tensor({2, kWide}, 2);
  const auto step = [&](const TensorList& leaves) {
    return [leaves](const Tensor& in) {
      Tensor h = in;
      for (const Tensor& w : leaves) h = tanh(matmul(h, w) * 0.01);
      const Tensor loss = sum(square(h));
      descend(loss, leaves, 0.01);
      return loss;
    };
  };
  const auto leaves = [] {
    TensorList made;
    for (uint32_t i = 0; i < kLayers; ++i) made.push_back(random_tensor({kWide, kWide}, i).requires_grad_());
    return made;
  };
  for (const bool exact : {true, false}) {
    const TensorList eager = leaves(), compiled = leaves();
    const std::optional<bool> fuse = exact ? std::nullopt : std::optional(true);
    auto run = compile(step(compiled), {.exact = exact, .fuse = fuse, .compile = Compiling::wait});
    for (int i = 0; i < 3; ++i) {
      const float expected = elements(step(eager)(x))[0];
      EXPECT_NEAR(elements(run(x))[0], expected, exact ? 0 : 1e-4 * expected);
    }
    for (size_t i = 0; exact && i < kLayers; ++i) EXPECT_EQ(elements(compiled[i]), elements(eager[i])) << i;
    EXPECT_LE(run.memory().front().planned, 3 * kWide * kWide * sizeof(float)) << "exact: " << exact;
  }
}

TEST(RecomputeOnce, LeavesControlFlowAlone) {
  const Tensor w = random_tensor({256}, 1).requires_grad_();
  const auto function = [&](const Tensor& x) {
    const Tensor doubled = while_loop([](const TensorList& s) { return lt(max(s[0]), Scalar(40.0)); },
                                      [](const TensorList& s) { return TensorList{s[0] * 2.0}; }, {x}, {.most = 20})[0];
    return sum(sin(doubled * w) * exp(doubled * -0.1));
  };
  auto compiled = compile(function, {.exact = true});
  const std::string text =
      error_of([&] { compile(function, {.exact = true, .memory_limit = 1})(random_tensor({256}, 2)); });
  auto limited = compile(function, {.exact = true, .memory_limit = number_after(text, "its values take at least ")});
  for (uint32_t seed = 2; seed < 5; ++seed) {
    const Tensor x = random_tensor({256}, seed);
    EXPECT_EQ(gradients([&](const Tensor& in) { return compiled(in); }, {w}, x), gradients(function, {w}, x));
    EXPECT_EQ(gradients([&](const Tensor& in) { return limited(in); }, {w}, x), gradients(function, {w}, x));
  }
  EXPECT_FALSE(contains(limited.memory().front().again, "while_loop"));
}

// A tensor that backward did not read may be written after forward. Only a limit makes backward read more.
TEST(RecomputeOnce, WithoutALimitReadsNoFurtherArgument) {
  const Tensor w = random_tensor({128, 128}, 1).requires_grad_();
  const auto function = [&](const Tensor& x, const Tensor& shift) { return sum(matmul(exp(x + shift), w)); };
  auto compiled = compile(function, {.exact = true});
  for (uint32_t seed = 2; seed < 5; ++seed) {
    const Tensor x = random_tensor({128, 128}, seed), shift = random_tensor({128}, seed);
    const std::vector<float> expected = elements(grad({function(x, shift)}, {w})[0]);
    const Tensor loss = compiled(x, shift);
    Tensor written = shift;
    fill_(written, 7.0);
    EXPECT_EQ(elements(grad({loss}, {w})[0]), expected);
  }
}

// State that forward writes is read with its old values.
TEST(RecomputeOnce, ReadsStateAsItWas) {
  const Tensor w = random_tensor({64, 64}, 1).requires_grad_();
  const auto over = [&](const Tensor& state) {
    return [&w, state](const Tensor& x) {
      Tensor h = x;
      for (int i = 0; i < 4; ++i) h = gelu(matmul(h + state, w) * 0.01);
      const Tensor loss = sum(square(h));
      const NoGrad scope;
      Tensor written = state;
      mul_(written, 1.5);
      return loss;
    };
  };
  const Tensor here = random_tensor({64}, 5), there = random_tensor({64}, 5);
  const std::string text = error_of([&] {
    compile(over(random_tensor({64}, 5)), {.exact = true, .memory_limit = 1})(random_tensor({64, 64}, 2));
  });
  auto limited = compile(over(there), {.exact = true, .memory_limit = number_after(text, "its values take at least ")});
  for (uint32_t seed = 2; seed < 6; ++seed) {
    const Tensor x = random_tensor({64, 64}, seed);
    EXPECT_EQ(gradients([&](const Tensor& in) { return limited(in); }, {w}, x), gradients(over(here), {w}, x));
    EXPECT_EQ(elements(there), elements(here));
  }
  EXPECT_FALSE(limited.memory().front().again.empty());
}

}  // namespace
}  // namespace tenon
