#include "core/cluster/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <span>

#include "core/global/communicator.h"
#include "core/global/global.h"
#include "core/global/interpreter.h"
#include "core/global/value.h"
#include "core/ops/ops.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::cluster {
namespace {

using global::Communicator;
using global::Placement;
using global::Sbp;
using Clock = std::chrono::steady_clock;

// One run of a plan on this rank.
class Run {
 public:
  Run(const Program& program, const Plan& plan, const Placement& placement)
      : program_(program), plan_(plan), placement_(placement), values_(program.values().size()) {
    last_.assign(program.values().size(), 0);
    for (size_t i = 0; i < program.calls().size(); ++i) {
      for (const ValueId id : program.calls()[i].inputs) last_[id] = i;
    }
    for (const ValueId id : program.results()) last_[id] = program.calls().size();
  }

  // Spreads a tensor that every rank has, without an exchange.
  Tensor spread(const Tensor& local, const NdSbp& sbp) const {
    const NdSbp everywhere = NdSbp::filled(placement_.grid().rank(), Sbp::broadcast());
    return global::to_global(global::make_global(local.dtype(), local.dims(), {placement_, everywhere}, local), sbp);
  }

  // `seconds`, if not null: gets the time of each call alone, started when its arguments are ready.
  TensorList run(const TensorList& inputs, std::vector<double>* seconds = nullptr) {
    seconds_ = seconds;
    for (ValueId id = 1; id < values_.size(); ++id) {
      if (program_.is_constant(id) && program_.values()[id].read) {
        values_[id] = spread(program_.graph()[id].constant, plan_.kept[id]);
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i) values_[program_.inputs()[i]] = inputs[i];
    for (size_t i = 0; i < program_.calls().size(); ++i) apply(i);
    TensorList results;
    for (const ValueId id : program_.results()) results.push_back(values_[id]);
    for (const Tensor& result : results) global::to_local(result).wait();
    return results;
  }

 private:
  void apply(size_t number) {
    const Program::Call& call = program_.calls()[number];
    const Way& way = plan_.ways[number];
    TensorList inputs(call.inputs.size()), outputs(call.outputs.size());
    std::vector<const Tensor*> pointers;
    bool is_global = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (call.inputs[i] != 0) inputs[i] = moved(values_[call.inputs[i]], way.inputs[i]);
      pointers.push_back(inputs[i].defined() ? &inputs[i] : nullptr);
      is_global = is_global || inputs[i].defined();
    }
    const graph::Node& node = *call.node;
    OpCall record;
    record.op = node.op;
    record.inputs = pointers;
    record.scalars = node.scalars;
    record.attributes = node.attributes.data();
    record.device = is_global ? node.device : placement_.device().state();
    record.outputs = outputs;
    record.precision = node.precision;
    const auto begin = seconds_ == nullptr ? Clock::time_point() : ready(inputs);
    (is_global ? global::global_interpreter() : eager_interpreter()).apply(record);
    if (seconds_ != nullptr) {
      (*seconds_)[number] = std::chrono::duration<double>(ready(outputs) - begin).count();
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (last_[call.inputs[i]] == number) values_[call.inputs[i]] = Tensor();
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      // If several signatures move nothing, the interpreter takes the first one, whose results are broadcast.
      const Tensor made = is_global ? moved(outputs[i], way.outputs[i]) : spread(outputs[i], way.outputs[i]);
      values_[call.outputs[i]] = moved(made, plan_.kept[call.outputs[i]]);
    }
  }

  static Tensor moved(const Tensor& tensor, const NdSbp& sbp) {
    return global::layout_of(tensor).sbp == sbp ? tensor : global::to_global(tensor, sbp);
  }

  // The time when all tensors are computed.
  static Clock::time_point ready(const TensorList& tensors) {
    for (const Tensor& tensor : tensors) {
      if (tensor.defined() && global::held(tensor).defined()) global::held(tensor).wait();
    }
    return Clock::now();
  }

  const Program& program_;
  const Plan& plan_;
  const Placement& placement_;
  TensorList values_;         // indexed by ValueId
  std::vector<size_t> last_;  // by ValueId: the last call that reads it
  std::vector<double>* seconds_ = nullptr;
};

Communicator& world() {
  static Communicator* const all = value_or_throw(Communicator::world()).get();  // lives as long as the process
  return *all;
}

double median(std::vector<double> all) {
  const auto middle = all.begin() + static_cast<ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

// The maximum over all ranks.
double slowest(double seconds) {
  throw_if_error(world().all_reduce(&seconds, &seconds, 1, DType::f64, global::Reduction::max, "seconds"));
  return seconds;
}

// The median of `runs` runs after a warm-up run. All ranks start each run together.
double seconds_of_runs(int32_t runs, const std::function<void()>& function) {
  std::vector<double> all;
  for (int32_t run = 0; run <= runs; ++run) {
    throw_if_error(world().barrier("run"));
    const auto begin = Clock::now();
    function();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (run > 0) all.push_back(slowest(seconds));
  }
  return median(std::move(all));
}

// All ranks of the launch in the grid of the plan. Errors: invalid_argument (a plan for another number of ranks).
Placement placement_of(const Plan& plan) {
  if (element_count(plan.grid) != world().size()) {
    throw Error(Code::invalid_argument,
                fmt::format("A plan for the grid {} needs as many ranks as the grid has, but there are {}.", plan.grid,
                            world().size()),
                fmt::format("Start it by mpirun -n {}.", element_count(plan.grid)));
  }
  std::vector<int32_t> ranks;
  for (int32_t rank = 0; rank < world().size(); ++rank) ranks.push_back(rank);
  return Placement("cpu", plan.grid, ranks);
}

TensorList spread_inputs(const Program& program, const Plan& plan, const Placement& placement,
                         const TensorList& inputs) {
  TensorList spread;
  for (size_t i = 0; i < inputs.size(); ++i) {
    spread.push_back(Run(program, plan, placement).spread(inputs[i], plan.kept[program.inputs()[i]]));
  }
  return spread;
}

}  // namespace

Measured run_plan(const Program& program, const Plan& plan, const TensorList& inputs, int32_t runs) {
  const Placement placement = placement_of(plan);
  const TensorList spread = spread_inputs(program, plan, placement, inputs);
  Measured measured;
  measured.seconds = seconds_of_runs(std::max(runs, 1), [&] {
    const global::Traffic before = Communicator::traffic();
    measured.results = Run(program, plan, placement).run(spread);
    const global::Traffic after = Communicator::traffic();
    measured.exchanges = after.exchanges - before.exchanges;
    measured.bytes = after.bytes - before.bytes;
  });
  return measured;
}

TensorList sample_inputs(const Program& program, uint64_t seed) {
  std::mt19937_64 generator(seed);
  TensorList inputs;
  for (const ValueId id : program.inputs()) {
    const Program::Value& value = program.values()[id];
    if (value.elements.defined()) {
      inputs.push_back(value.elements);
      continue;
    }
    std::vector<float> elements(static_cast<size_t>(element_count(value.dims)));
    for (float& element : elements) element = static_cast<float>(generator() % 5) - (is_floating(value.dtype) ? 2 : 0);
    const Device device(program.graph()[id].device);
    inputs.push_back(Tensor::from(std::span<const float>(elements), value.dims, device).to(value.dtype));
  }
  return inputs;
}

Topology measured_topology() {
  constexpr int32_t kRuns = 15;
  constexpr int64_t kSide = 384, kMany = int64_t{1} << 20, kOps = 50;
  const Placement all = Placement::all("cpu");
  const Device device = all.device();
  const auto everywhere = [&](const Tensor& local) {
    return global::make_global(local.dtype(), local.dims(), {all, {Sbp::broadcast()}}, local);
  };
  const Tensor matrix = everywhere(tenon::ones({kSide, kSide}, DType::f32, device));
  const Tensor list = everywhere(tenon::ones({kMany}, DType::f32, device));
  const Tensor few = everywhere(tenon::ones({4}, DType::f32, device));
  const auto many_bytes = static_cast<double>(kMany * 4);
  Topology made;
  made.start = seconds_of_runs(kRuns,
                               [&] {
                                 for (int64_t i = 0; i < kOps; ++i) tenon::add(few, few);
                               }) /
               static_cast<double>(kOps);
  const auto beyond_start = [&](double seconds) { return std::max(seconds - made.start, 1e-9); };
  // Programs multiply matrices as they are stored and, for gradients, transposed.
  const auto side = static_cast<double>(kSide);
  const Tensor turned = tenon::transpose(matrix, 0, 1);
  made.compute = 4 * side * side * side / beyond_start(seconds_of_runs(kRuns, [&] {
                   const Tensor product = tenon::matmul(matrix, matrix);
                   global::to_local(tenon::matmul(turned, product)).wait();
                 }));
  made.bandwidth =
      3 * many_bytes / beyond_start(seconds_of_runs(kRuns, [&] { global::to_local(tenon::add(list, list)).wait(); }));
  Level level{"launch", world().size(), 1e-6, 1e9};
  if (world().size() > 1) {
    const auto ranks = static_cast<double>(world().size());
    const auto summed = [&](const Tensor& tensor) {
      const Tensor sum = global::to_global(tensor, {Sbp::partial()});
      return seconds_of_runs(kRuns, [&] { global::to_local(global::to_global(sum, {Sbp::broadcast()})).wait(); });
    };
    const double short_time = summed(few), long_time = summed(list);
    level.latency = short_time / (2 * std::ceil(std::log2(ranks)));
    level.bandwidth = 2 * many_bytes * (ranks - 1) / ranks / std::max(long_time - short_time, 1e-9);
  }
  made.levels.push_back(level);
  return made;
}

void measure_ops(const Program& program, const Plan& plan, const TensorList& inputs, Topology* topology) {
  constexpr int32_t kRuns = 5;
  const Placement placement = placement_of(plan);
  const TensorList spread = spread_inputs(program, plan, placement, inputs);
  const size_t calls = program.calls().size();
  std::vector<std::vector<double>> taken(calls);
  for (int32_t run = 0; run <= kRuns; ++run) {
    std::vector<double> seconds(calls);
    Run(program, plan, placement).run(spread, &seconds);
    for (size_t i = 0; run > 0 && i < calls; ++i) taken[i].push_back(seconds[i]);
  }
  struct Kind {
    double taken = 0, said = 0;  // beyond the start time of an op
  };
  std::map<std::string, Kind, std::less<>> kinds;
  topology->paces.clear();
  const Dims coordinates = placement.coordinates(placement.position());
  for (size_t i = 0; i < calls; ++i) {
    const Program::Call& call = program.calls()[i];
    const double said = seconds_of(program, call, plan.ways[i], plan.grid, coordinates, *topology) - topology->start;
    Kind& kind = kinds[std::string(call.node->op->name)];
    kind.taken += std::max(0.0, median(taken[i]) - topology->start);
    kind.said += said;
  }
  for (const auto& [name, kind] : kinds) {
    const double taken_most = slowest(kind.taken), said_most = slowest(kind.said);
    if (said_most > 0) topology->paces[name] = std::clamp(taken_most / said_most, 0.02, 50.0);
  }
}

}  // namespace tenon::cluster
