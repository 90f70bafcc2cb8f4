#include <algorithm>
#include <set>

#include "core/autograd/autograd.h"
#include "core/ops/op_call.h"
#include "core/ops/ops.h"
#include "core/optim/optim.h"
#include "primitives/text/format.h"

namespace tenon::optim {
namespace {

template <class... Parts>
[[noreturn]] void refuse(std::string_view op, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  throw Error(Subject{op}, Code::invalid_argument, fmt::format(text, parts...));
}

DType number_dtype(const Tensor& parameter) { return parameter.dtype() == DType::f64 ? DType::f64 : DType::f32; }

// One number on the device of `like`. The eager interpreter makes it, since state of an optimiser outlives a recording.
Tensor number(double value, DType dtype, const Tensor& like) {
  const InterpreterScope scope(eager_interpreter());
  return tenon::full(IntList(), value, dtype, like.device());
}

void require_rate(std::string_view name, double lr) {
  if (!(lr >= 0)) refuse(name, "a learning rate must be at least 0, not {}.", lr);
}

}  // namespace

Optimizer::Optimizer(std::string_view name, std::vector<Group> groups, double lr, double weight_decay,
                     std::vector<std::string> buffers)
    : name_(name), buffer_names_(std::move(buffers)) {
  std::set<const TensorImpl*> met;
  for (const Group& group : groups) {
    groups_.push_back({group.lr.value_or(lr), group.weight_decay.value_or(weight_decay), {}});
    require_rate(name_, groups_.back().lr);
    const double decay = groups_.back().weight_decay;
    if (!(decay >= 0)) refuse(name_, "a weight decay must be at least 0, not {}.", decay);
    for (const Tensor& parameter : group.parameters) {
      if (!parameter.defined() || !parameter.requires_grad() || !parameter.is_leaf()) {
        refuse(name_, "parameter {} is not a leaf that requires a gradient.", parameters_.size());
      }
      if (!met.insert(parameter.impl()).second) refuse(name_, "parameter {} is listed twice.", parameters_.size());
      add_parameter(parameter, groups_.size() - 1);
    }
  }
  if (parameters_.empty()) refuse(name_, "there are no parameters.");
}

Optimizer::~Optimizer() = default;

void Optimizer::add_parameter(const Tensor& parameter, size_t group) {
  ParameterState state{parameter, group, rate_of(&groups_[group], parameter), 0, {}};
  const auto shared = std::find_if(parameters_.begin(), parameters_.end(), [&](const ParameterState& other) {
    return other.parameter.device() == parameter.device() && number_dtype(other.parameter) == number_dtype(parameter);
  });
  state.clock = shared != parameters_.end() ? shared->clock : new_clock(parameter, 0);
  ++clocks_[state.clock].parameters;
  const InterpreterScope scope(eager_interpreter());
  const NoGrad no_gradients;
  for (size_t i = 0; i < buffer_names_.size(); ++i) {
    Tensor buffer = tenon::clone(parameter.detach());  // laid out or spread like the parameter
    state.buffers.push_back(tenon::fill_(buffer, 0));
  }
  parameters_.push_back(std::move(state));
}

size_t Optimizer::rate_of(GroupState* group, const Tensor& parameter) {
  DeviceState* device = parameter.device().state();
  const DType dtype = number_dtype(parameter);
  std::vector<Rate>& rates = group->rates;
  const auto known = std::find_if(rates.begin(), rates.end(),
                                  [&](const Rate& rate) { return rate.device == device && rate.dtype == dtype; });
  if (known != rates.end()) return static_cast<size_t>(known - rates.begin());
  rates.push_back({device, dtype, number(group->lr, dtype, parameter)});
  return rates.size() - 1;
}

size_t Optimizer::new_clock(const Tensor& like, int64_t steps) {
  clocks_.push_back({number(static_cast<double>(steps), number_dtype(like), like), steps, 0});
  return clocks_.size() - 1;
}

// Gives a new clock to parameters that step while others of their clock do not.
void Optimizer::move_clocks(const std::vector<size_t>& ready) {
  std::vector<size_t> stepping(clocks_.size());
  for (const size_t i : ready) ++stepping[parameters_[i].clock];
  std::vector<size_t> moved(clocks_.size());
  for (size_t clock = 0; clock < moved.size(); ++clock) {
    moved[clock] = clock;
    if (stepping[clock] == 0 || stepping[clock] == clocks_[clock].parameters) continue;
    moved[clock] = clocks_.size();
    const InterpreterScope scope(eager_interpreter());
    const Clock made{tenon::clone(clocks_[clock].steps), clocks_[clock].seen, 0};
    clocks_.push_back(made);
  }
  for (const size_t i : ready) {
    size_t& clock = parameters_[i].clock;
    if (moved[clock] == clock) continue;
    --clocks_[clock].parameters;
    clock = moved[clock];
    ++clocks_[clock].parameters;
  }
}

void Optimizer::step() {
  const NoGrad scope;
  std::vector<size_t> ready;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].parameter.grad().defined()) ready.push_back(i);
  }
  if (ready.empty()) return;
  move_clocks(ready);
  run_batches(ready);
}

void Optimizer::run_batches(const std::vector<size_t>& ready) {
  std::vector<Batch> batches;
  std::vector<const ParameterState*> like;  // one parameter of each batch
  std::vector<bool> stepped(clocks_.size());
  for (const size_t i : ready) {
    ParameterState& state = parameters_[i];
    Clock& clock = clocks_[state.clock];
    if (!stepped[state.clock]) {
      tenon::add_(clock.steps, 1);
      ++clock.seen;
      stepped[state.clock] = true;
    }
    const auto same = std::find_if(like.begin(), like.end(), [&](const ParameterState* other) {
      return other->group == state.group && other->clock == state.clock && other->rate == state.rate &&
             other->parameter.dtype() == state.parameter.dtype();
    });
    const auto at = static_cast<size_t>(same - like.begin());
    if (same == like.end()) {
      const GroupState& group = groups_[state.group];
      like.push_back(&state);
      batches.push_back({{},
                         {},
                         std::vector<TensorList>(buffer_names_.size()),
                         clock.steps,
                         group.rates[state.rate].value,
                         group.weight_decay,
                         clock.seen == 1});
    }
    Batch& batch = batches[at];
    batch.parameters.push_back(state.parameter);
    batch.gradients.push_back(state.parameter.grad());
    for (size_t k = 0; k < state.buffers.size(); ++k) batch.buffers[k].push_back(state.buffers[k]);
  }
  for (const Batch& batch : batches) update(batch);
}

void Optimizer::zero_grad() {
  for (const ParameterState& state : parameters_) state.parameter.set_grad({});
}

void Optimizer::set_lr(size_t group, double lr) {
  require_rate(name_, lr);
  GroupState& state = groups_.at(group);
  state.lr = lr;
  const NoGrad scope;
  for (Rate& rate : state.rates) tenon::fill_(rate.value, lr);
}

void Optimizer::set_lr(double lr) {
  for (size_t group = 0; group < groups_.size(); ++group) set_lr(group, lr);
}

NamedTensors Optimizer::state() const {
  const NoGrad scope;
  NamedTensors named;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const ParameterState& state = parameters_[i];
    named[fmt::format("{}.step", i)] = tenon::clone(clocks_[state.clock].steps);
    for (size_t k = 0; k < buffer_names_.size(); ++k) {
      named[fmt::format("{}.{}", i, buffer_names_[k])] = state.buffers[k];
    }
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    named[fmt::format("group {}.lr", g)] = Tensor::from<double>(std::vector<double>{groups_[g].lr}, Dims());
  }
  return named;
}

namespace {

// The tensor of this name; it must have the shape and dtype of `wanted`.
const Tensor& found(std::string_view optimizer, const NamedTensors& state, const std::string& name,
                    const Tensor& wanted) {
  const auto at = state.find(name);
  if (at == state.end()) refuse(optimizer, "the state to load has no '{}'.", name);
  if (at->second.dtype() != wanted.dtype() || !(at->second.dims() == wanted.dims())) {
    refuse(optimizer, "'{}' of the state to load is {} {}, not {} {}.", name, dtype_name(at->second.dtype()),
           at->second.dims(), dtype_name(wanted.dtype()), wanted.dims());
  }
  return at->second;
}

}  // namespace

// The tensors of clocks are overwritten in place, since a compiled step reads them. Parameters of one clock whose step
// counts now differ get new clocks.
void Optimizer::load_clocks(const std::vector<int64_t>& steps) {
  std::vector<bool> read(clocks_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    size_t& clock = parameters_[i].clock;
    if (!read[clock]) {
      read[clock] = true;
      clocks_[clock].seen = steps[i];
      tenon::fill_(clocks_[clock].steps, static_cast<double>(steps[i]));
    }
    if (clocks_[clock].seen == steps[i]) continue;
    --clocks_[clock].parameters;
    clock = new_clock(parameters_[i].parameter, steps[i]);
    read.push_back(true);
    ++clocks_[clock].parameters;
  }
}

void Optimizer::load_state(const NamedTensors& state) {
  const NamedTensors own = this->state();
  for (const auto& [name, tensor] : own) (void)found(name_, state, name, tensor);
  for (const auto& [name, tensor] : state) {
    if (own.count(name) == 0) refuse(name_, "the state to load has the unknown entry '{}'.", name);
  }
  const NoGrad scope;
  std::vector<int64_t> steps;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto named = [&](std::string_view name) { return state.at(fmt::format("{}.{}", i, name)); };
    for (size_t k = 0; k < buffer_names_.size(); ++k) tenon::copy_(parameters_[i].buffers[k], named(buffer_names_[k]));
    steps.push_back(static_cast<int64_t>(tenon::cast(named("step"), DType::f64).to_host<double>()[0]));
  }
  load_clocks(steps);
  for (size_t g = 0; g < groups_.size(); ++g) {
    set_lr(g, state.at(fmt::format("group {}.lr", g)).to_host<double>()[0]);
  }
}

void Optimizer::save(const std::string& path) const { save_safetensors(path, state(), {{"optimizer", name_}}); }

void Optimizer::load(const std::string& path) {
  Metadata texts;
  const NamedTensors state = load_safetensors(path, Device::host(), &texts);
  const auto of = texts.find("optimizer");
  if (of == texts.end() || of->second != name_) {
    refuse(name_, "the file {} holds the state of {}.", path, of == texts.end() ? "no optimiser" : of->second);
  }
  load_state(state);
}

}  // namespace tenon::optim
