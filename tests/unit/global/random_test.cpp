// Random programs on global tensors equal their run on one process (results, gradients and errors), however inputs and
// constants are spread.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/autograd/autograd.h"
#include "core/global/global.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "tests/unit/graph/random_program.h"

namespace tenon::global {
namespace {

constexpr int kSteps = 12;
constexpr uint32_t kPrograms = graph::kSanitized ? 20 : 120;

// Every rank draws the same spreads.
class Spreads {
 public:
  Spreads(uint32_t seed, Placement placement) : random_(seed), placement_(std::move(placement)) {}

  Tensor operator()(const Tensor& whole) {
    const int32_t axes = placement_.grid().rank();
    NdSbp sbp;
    for (int32_t i = 0; i < axes; ++i) sbp.push_back(draw(whole));
    return to_global(to_global(whole, placement_, NdSbp::filled(axes, Sbp::broadcast())), sbp);
  }

 private:
  Sbp draw(const Tensor& whole) {
    const uint32_t kinds = static_cast<uint32_t>(whole.dims().rank()) + 2;
    const uint32_t drawn = static_cast<uint32_t>(random_() % kinds);
    if (drawn == 0) return Sbp::broadcast();
    if (drawn == 1) return Sbp::partial();
    return Sbp::split(static_cast<int32_t>(drawn - 2));
  }

  std::mt19937 random_;
  Placement placement_;
};

const char* devices() {
  const char* named = std::getenv("GLOBAL_DEVICES");
  return named != nullptr ? named : "cpu";
}

Placement placement() {
  if (world_size() == 4) return Placement(devices(), {2, 2}, {0, 1, 2, 3});
  return Placement::all(devices());
}

struct Outcome {
  TensorList results;
  std::string error;  // the error of backward, if a program has written a tensor that a gradient needs
};

// The results of the program, and the gradients of the sum of their squares.
Outcome run(const graph::RandomProgram& program, const TensorList& inputs) {
  TensorList leaves{inputs[0].detach().requires_grad_(), inputs[1].detach().requires_grad_(), inputs[2]};
  graph::RandomProgram own = program;
  TensorList results = own(leaves);
  Tensor loss = sum(square(results[0]));
  for (const size_t i : {1U, 2U, 5U}) loss = add(loss, cast(sum(square(results[i])), loss.dtype()));
  try {
    loss.backward();
  } catch (const Error& error) {
    return {{}, error.status().message().substr(0, error.status().message().find(" (version"))};  // boxing writes too
  }
  for (const size_t i : {0U, 1U})
    results.push_back(leaves[i].grad().defined() ? leaves[i].grad() : zeros_like(leaves[i]));
  for (Tensor& result : results) result = cast(result.detach(), DType::f64);
  return {std::move(results), {}};
}

// Returns the difference, or nothing. The bound allows sums in f32 in another order, relative to the largest
// element.
std::string difference(const graph::RandomProgram& program, uint32_t seed) {
  const TensorList inputs{graph::random_tensor({4, 4}, seed), graph::random_tensor({4, 4}, seed + 1),
                          graph::random_numbers({4, 4}, seed + 2)};
  const Outcome whole = run(program, inputs);
  Spreads spreads(seed, placement());
  const Outcome global = run(program.with_constants([&](const Tensor& whole) { return spreads(whole); }),
                             {spreads(inputs[0]), spreads(inputs[1]), spreads(inputs[2])});
  if (global.error != whole.error) return fmt::format("'{}' and not '{}'", global.error, whole.error);
  const TensorList &got = global.results, &expected = whole.results;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (got[i].dims() != expected[i].dims())
      return fmt::format("result {}: {} and not {}", i, got[i].dims(), expected[i].dims());
    const std::vector<double> ours = got[i].to_host<double>(), theirs = expected[i].to_host<double>();
    double largest = 1;
    for (const double value : theirs) largest = std::fmax(largest, std::abs(value));
    for (size_t at = 0; at < theirs.size(); ++at) {
      if (std::isnan(ours[at]) && std::isnan(theirs[at])) continue;
      if (!(std::abs(ours[at] - theirs[at]) <= 1e-4 * largest)) {
        return fmt::format("result {}, element {}: {} and not {}", i, at, ours[at], theirs[at]);
      }
    }
  }
  return {};
}

// As many as RANDOM_PROGRAMS says.
uint32_t programs() {
  const char* text = std::getenv("RANDOM_PROGRAMS");
  return text != nullptr ? static_cast<uint32_t>(std::strtoul(text, nullptr, 10)) : kPrograms;
}

TEST(RandomPrograms, OnGlobalTensorsEqualOneProcess) {
  for (uint32_t seed = 1; seed <= programs(); ++seed) {
    graph::RandomProgram program(seed, kSteps, true, false);
    if (difference(program, seed).empty()) continue;
    for (size_t at = program.size(); at-- > 0;) {  // every rank leaves out the same steps
      const graph::RandomProgram smaller = program.without(at);
      if (!difference(smaller, seed).empty()) program = smaller;
    }
    FAIL() << "seed " << seed << ", " << program.size() << " steps: " << difference(program, seed);
  }
}

}  // namespace
}  // namespace tenon::global
