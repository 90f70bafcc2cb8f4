// The share of reduction time that a data-parallel step hides behind backward.
//
//   bench_overlap <device> [<layers> <width> <rows>]      one rank of a launch; overlap.py launches it on the fakes
//
// Two rows, for eager and compiled steps: the median times of a step (with), of the same step without any reduction,
// because no gradient is needed (without), and of its reductions alone (alone); and the hidden share: 1 - (with -
// without) / alone.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/global/rounds.h"
#include "core/autograd/autograd.h"
#include "core/compile/compile.h"
#include "core/global/communicator.h"
#include "core/global/global.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"

namespace {

using namespace tenon;
using bench::median;
using bench::numbers;
using bench::seconds_of;
using global::Communicator;
using global::Placement;
using global::Sbp;

constexpr int kRounds = 9;

class Net {
 public:
  Net(const Placement& all, int64_t layers, int64_t width, int64_t rows, bool reduces, bool compiles)
      : device_(all.device()), reduces_(reduces) {
    if (compiles) {
      compiled_.emplace([this](const TensorList& in) { return train(in[0]); }, CompileOptions());
    }
    const auto spread = [&](const Tensor& whole, Sbp sbp) {
      return global::to_global(global::to_global(whole, all, {Sbp::broadcast()}), {sbp});
    };
    batch_ = spread(numbers(rows, width, 1), Sbp::split(0));
    for (int64_t i = 0; i < layers; ++i) {
      const Tensor weight = numbers(width, width, static_cast<uint32_t>(i + 2));
      weights_.push_back(spread(weight, Sbp::broadcast()).detach().requires_grad_());
      moments_.push_back(spread(weight, Sbp::broadcast()).detach());
      others_.push_back(spread(weight, Sbp::broadcast()).detach());
    }
  }

  void step() {
    compiled_ ? static_cast<void>((*compiled_)({batch_})) : static_cast<void>(train(batch_));
    device_.synchronize();
  }

 private:
  // Returns the unneeded gradients as results, so that they are computed.
  TensorList train(const Tensor& batch) {
    Tensor x = batch;
    for (const Tensor& weight : weights_) x = matmul(x, weight);
    const Tensor loss = sum(x);
    loss.backward();
    TensorList results{loss};
    const NoGrad scope;
    for (size_t i = 0; i < weights_.size(); ++i) {
      Tensor weight = weights_[i];
      moments_[i].mul_(0.9).add_(reduces_ ? weight.grad() : others_[i]);
      weight.sub_(moments_[i] * 1e-6);
      if (!reduces_) results.push_back(weight.grad());
      weight.set_grad({});
    }
    return results;
  }

  Device device_;
  bool reduces_;
  Tensor batch_;
  TensorList weights_, moments_, others_;
  std::optional<CompiledList> compiled_;
};

void run(const std::string& device, int64_t layers, int64_t width, int64_t rows, bool compiles) {
  Communicator& world = *value_or_throw(Communicator::world());
  const Placement all = Placement::all(device);
  Net net(all, layers, width, rows, true, compiles), idle(all, layers, width, rows, false, compiles);
  TensorList sums;
  for (int64_t i = 0; i < layers; ++i) {
    sums.push_back(
        global::to_global(global::to_global(numbers(width, width, 1), all, {Sbp::broadcast()}), {Sbp::partial()}));
  }
  const auto reduce = [&] {
    TensorList reduced;
    for (const Tensor& each : sums) reduced.push_back(global::to_global(each, {Sbp::broadcast()}));
    all.device().synchronize();
  };
  std::vector<double> with, without, alone;
  for (int round = -3; round < kRounds; ++round) {
    const double first = seconds_of(world, [&] { net.step(); });
    const double second = seconds_of(world, [&] { idle.step(); });
    const double third = seconds_of(world, reduce);
    if (round < 0) continue;  // warm-up: the first step expects no reductions, and the first two steps are recorded
    with.push_back(first);
    without.push_back(second);
    alone.push_back(third);
  }
  const double step = median(with), bare = median(without), reductions = median(alone);
  if (global::rank() == 0) {
    std::printf(
        "%s, %d ranks, %lld layers of %lld: step %.1f ms, without reductions %.1f ms, reductions alone %.1f ms, "
        "hidden %.0f %%\n",
        compiles ? "compiled" : "eager", world.size(), static_cast<long long>(layers), static_cast<long long>(width),
        step * 1e3, bare * 1e3, reductions * 1e3, 100 * (1 - (step - bare) / reductions));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const auto number = [&](int at, int64_t otherwise) { return argc > at ? std::atoll(argv[at]) : otherwise; };
  for (const bool compiles : {false, true}) {
    run(argc > 1 ? argv[1] : "cpu", number(2, 12), number(3, 256), number(4, 8), compiles);
  }
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
