// The share of a step in which the stages of a pipeline work at the same time.
//
//   mpirun -n 2 bench_pipeline [<layers of a stage> <width> <rows>]     one thread per rank: TENON_THREADS=1
//
// One stage per rank. A row has the median times of a training step, eager and compiled, with the batch as one part, so
// that the stages work one after the other, and in several parts; and the ideal ratio for that number of parts: (parts
// + stages - 1) / (parts * stages).
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/global/rounds.h"
#include "core/autograd/autograd.h"
#include "core/compile/compile.h"
#include "core/global/global.h"
#include "core/global/pipeline.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"

namespace {

using namespace tenon;
using global::Communicator;
using global::Placement;
using global::Sbp;

constexpr int kRounds = 9;

class Pipeline {
 public:
  Pipeline(int64_t layers, int64_t width, int64_t rows) {
    for (int32_t rank = 0; rank < global::world_size(); ++rank) {
      stages_.emplace_back("cpu", std::vector<int32_t>{rank});
      for (int64_t i = 0; i < layers; ++i) {
        const Tensor whole = bench::numbers(width, width, static_cast<uint32_t>(rank * layers + i + 2));
        weights_.push_back(global::to_global(whole, stages_.back(), {Sbp::broadcast()}).detach().requires_grad_());
      }
    }
    batch_ = global::to_global(bench::numbers(rows, width, 1), stages_.front(), {Sbp::broadcast()});
  }

  TensorList step(const TensorList& batch, int64_t parts) {
    const Tensor loss = global::micro_batches(parts, batch, [this](const TensorList& part) {
      Tensor x = part[0];
      for (size_t i = 0; i < weights_.size(); ++i) {
        const size_t stage = i / (weights_.size() / stages_.size());
        x = relu(matmul(global::to_global(x, stages_[stage], {Sbp::broadcast()}), weights_[i]));
      }
      return mean(square(x));
    });
    const NoGrad scope;
    for (Tensor& weight : weights_) {
      weight.sub_(weight.grad() * 1e-3);
      weight.set_grad({});
    }
    return {loss};
  }
  TensorList batch() const { return {batch_}; }

 private:
  std::vector<Placement> stages_;
  TensorList weights_;
  Tensor batch_;
};

double step_of(Pipeline* pipeline, int64_t parts, bool compiles) {
  Communicator& world = *value_or_throw(Communicator::world());
  const CompiledList compiled([=](const TensorList& batch) { return pipeline->step(batch, parts); }, {});
  std::vector<double> times;
  for (int round = -3; round < kRounds; ++round) {
    const double seconds = bench::seconds_of(world, [&] {
      compiles ? compiled(pipeline->batch()) : pipeline->step(pipeline->batch(), parts);
      Device("cpu").synchronize();
    });
    if (round >= 0) times.push_back(seconds);
  }
  return bench::median(times);
}

void run(int64_t layers, int64_t width, int64_t rows) {
  const auto stages = static_cast<double>(global::world_size());
  Pipeline pipeline(layers, width, rows);
  for (const bool compiles : {false, true}) {
    const double whole = step_of(&pipeline, 1, compiles);
    for (const int64_t parts : {2, 4, 8, 16}) {
      const double seconds = step_of(&pipeline, parts, compiles);
      if (global::rank() != 0) continue;
      const auto count = static_cast<double>(parts);
      std::printf("%s, %.0f stages, %lld parts: %.1f ms, as one part %.1f ms, ratio %.2f, at least %.2f\n",
                  compiles ? "compiled" : "eager", stages, static_cast<long long>(parts), seconds * 1e3, whole * 1e3,
                  seconds / whole, (count + stages - 1) / (count * stages));
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const auto number = [&](int at, int64_t otherwise) { return argc > at ? std::atoll(argv[at]) : otherwise; };
  run(number(1, 4), number(2, 512), number(3, 1024));
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
