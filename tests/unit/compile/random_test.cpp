// Random steps, compiled: state, results and gradients have the bits of the eager run, and the graph of each step keeps
// its results under random passes. A failing step is shrunk, and printed as the text of its graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/compile/compile.h"
#include "core/compile/recorded_function.h"
#include "core/graph/text.h"
#include "core/tensor/generator.h"
#include "primitives/text/format.h"
#include "tests/unit/compile/random_step.h"
#include "tests/unit/graph/shrink.h"

namespace tenon {
namespace {

constexpr uint32_t kSteps = graph::kSanitized ? 60 : 1000;
constexpr int kOps = 12;
constexpr uint32_t kCalls = 3;
constexpr float kRounding = 4e-3f;  // some steps compute in f16

TensorList inputs_of(const RandomStep& step, uint32_t seed) {
  TensorList inputs{graph::random_tensor({4, 4}, seed), graph::random_numbers({4, 4}, seed + 7)};
  if (step.input_wants_gradient()) inputs[0].requires_grad_();
  return inputs;
}

// The observable effects of some calls: the bytes of all results, of the state and of the gradients; or the error that
// ended the calls.
struct Seen {
  std::vector<std::string> values;
  std::string error;
};

const std::string kNone = "none";

std::string bytes_of(const Tensor& tensor) {
  const NoGrad scope;
  return tensor.defined() ? graph::bytes_of(contiguous(tensor)) : kNone;
}

// The caller's use of a step's results. Values computed before the step are kept for the next one.
void ask(Asks asks, const World& world, const TensorList& results) {
  Tensor loss = sum(sin(results[0])) + mean(tanh(results[1])) + mean(tanh(results[2]));
  if (asks == Asks::caller_second_order) {
    loss = sum(square(grad({loss}, {world.weights[2]}, {}, {.create_graph = true})[0]));
  }
  if (loss.requires_grad()) backward({loss}, {}, {.retain_graph = true});
}

Seen calls(const std::function<TensorList(const TensorList&)>& function, const RandomStep& step, const World& world,
           uint32_t seed) {
  Seen seen;
  manual_seed(seed);
  try {
    for (uint32_t call = 0; call < kCalls; ++call) {
      const TensorList inputs = inputs_of(step, seed + 1000 * call);
      const TensorList results = function(inputs);
      if (caller_asks(step.asks())) ask(step.asks(), world, results);
      for (const Tensor& result : results) seen.values.push_back(bytes_of(result));
      for (const Tensor& tensor : {world.memory, world.counter, inputs[0].grad()}) {
        seen.values.push_back(bytes_of(tensor));
      }
      for (const Tensor& weight : world.weights) {
        seen.values.push_back(bytes_of(weight));
        seen.values.push_back(bytes_of(weight.grad()));
      }
    }
  } catch (const Error& error) {
    seen.error = error.what();
  }
  return seen;
}

bool none_or_zero(const std::string& bytes) {
  return bytes == kNone || std::all_of(bytes.begin(), bytes.end(), [](char byte) { return (byte & 0x7f) == 0; });
}

// True if two values are equal. Sums of second order have two parts, from the step and from its caller, which are
// rounded separately. A gradient that does not depend on anything may be zero or undefined.
bool same(const std::string& a, const std::string& b, Asks asks) {
  if (asks == Asks::caller_second_order && none_or_zero(a) && none_or_zero(b)) return true;
  if (a == b || asks != Asks::caller_second_order || a.size() != b.size()) return a == b;
  std::vector<float> of_a(a.size() / sizeof(float)), of_b(of_a.size());
  std::memcpy(of_a.data(), a.data(), of_a.size() * sizeof(float));
  std::memcpy(of_b.data(), b.data(), of_b.size() * sizeof(float));
  float scale = 1;
  for (float number : of_b) scale = std::max(scale, std::fabs(number));
  for (size_t i = 0; i < of_a.size(); ++i) {
    const bool nan = std::isnan(of_a[i]) && std::isnan(of_b[i]);
    if (!nan && of_a[i] != of_b[i] && !(std::fabs(of_a[i] - of_b[i]) <= kRounding * scale)) return false;
  }
  return true;
}

// Returns the first difference between the compiled step and the eager one; nothing if there is none.
std::optional<std::string> fault(const RandomStep& step, uint32_t seed) {
  World here(seed), there(seed);
  const Seen eager = calls(step.over(&here), step, here, seed);
  const Seen compiled =
      calls([&, run = compile(step.over(&there), {.exact = true})](const TensorList& x) { return run(x); }, step, there,
            seed);
  if (compiled.error.empty() != eager.error.empty()) {
    return fmt::format("compiled it says '{}', eager '{}'", compiled.error, eager.error);
  }
  const size_t count = std::min(eager.values.size(), compiled.values.size());
  for (size_t i = 0; i < count; ++i) {
    if (!same(compiled.values[i], eager.values[i], step.asks())) return fmt::format("value {} of {} differs", i, count);
  }
  return std::nullopt;
}

// The whole program of a call: forward, backward and writes in one graph, before all passes.
std::string graph_of(const RandomStep& step, uint32_t seed) {
  World world(seed);
  const TensorList inputs = inputs_of(step, seed);
  const compilation::CallShape shape = compilation::shape_of("step", inputs);
  const auto taken = compilation::record(step.over(&world), {}, inputs, shape, nullptr);
  return graph::print(taken.recording->recorded);
}

RandomStep shrink(RandomStep step, const std::function<bool(const RandomStep&)>& fails) {
  for (size_t at = step.size(); at-- > 0;) {
    const RandomStep smaller = step.without(at);
    if (fails(smaller)) {
      step = smaller;
      at = step.size();
    }
  }
  return step;
}

std::string text_of(const RandomStep& step, uint32_t seed) {
  try {
    return graph_of(step, seed);
  } catch (const Error& error) {
    return fmt::format("no graph: {}", error.what());
  }
}

TEST(RandomSteps, CompiledHaveTheBitsOfTheEagerRun) {
  uint32_t ended = 0;
  for (uint32_t seed = 0; seed < kSteps; ++seed) {
    const RandomStep step(seed, kOps, false, nullptr);
    World world(seed);
    ended += calls(step.over(&world), step, world, seed).error.empty() ? 0 : 1;
    if (!fault(step, seed)) continue;
    const RandomStep small = shrink(step, [&](const RandomStep& smaller) { return fault(smaller, seed).has_value(); });
    FAIL() << "seed " << seed << ": " << *fault(small, seed) << "\n" << text_of(small, seed);
  }
  EXPECT_LT(ended, kSteps / 4) << "too many steps end with an error, such as a write into what backward needs";
}

// Some of the exact passes, in any order.
std::vector<const graph::Pass*> some_passes(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<const graph::Pass*> some;
  for (const graph::Pass& pass : graph::passes()) {
    if (pass.bound.empty() && random() % 3 != 0) some.push_back(&pass);
  }
  std::shuffle(some.begin(), some.end(), random);
  return some;
}

TEST(RandomSteps, GraphsKeepEveryBitUnderRandomExactPasses) {
  for (uint32_t seed = 0; seed < kSteps; ++seed) {
    std::string text;
    try {
      text = graph_of(RandomStep(seed, kOps, false, nullptr), seed);
    } catch (const Error&) {
      continue;  // the step ends with an error, like the eager one
    }
    const std::vector<const graph::Pass*> some = some_passes(seed);
    std::string names;
    for (const graph::Pass* pass : some) names += fmt::format(" {}", pass->name);
    const graph::Rewriting rewriting{"some passes", true,
                                     [&](graph::Graph* graph) {
                                       for (const graph::Pass* pass : some) pass->run(graph, {.exact = true});
                                     },
                                     false};
    if (!graph::fault(text, rewriting, seed)) continue;
    const std::string small = graph::shrink(text, rewriting, seed);
    FAIL() << "seed " << seed << ", passes" << names << ": " << *graph::fault(small, rewriting, seed) << "\n" << small;
  }
}

// Shrinks steps whose graph contains a given op: little more than that op is left.
TEST(RandomSteps, ShrinkToWhatFails) {
  const RandomStep step(0, kOps, false, nullptr);
  const auto differs = [](const RandomStep& smaller) {
    World world(0);
    const std::string text = text_of(smaller.over(&world), 0);
    return text.find("tanh") != std::string::npos;
  };
  ASSERT_TRUE(differs(step));
  const RandomStep small = shrink(step, differs);
  EXPECT_LE(small.size(), 1u) << text_of(small, 0);
}

}  // namespace
}  // namespace tenon
