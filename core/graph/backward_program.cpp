#include "core/graph/backward_program.h"

#include <algorithm>
#include <cstring>

#include "core/graph/passes/passes.h"
#include "core/ops/attributes.h"
#include "core/ops/functors/sized.h"
#include "core/ops/op_rows.h"

namespace tenon::graph {
namespace {

// For each value: true if one of `outputs` needs it.
std::vector<bool> needed_by(const Graph& program, std::span<const ValueId> outputs) {
  std::vector<bool> needed(program.value_count(), false);
  for (ValueId id : outputs) needed[id] = true;
  for (NodeId id = program.last(); id != kNoNode; id = program.previous(id)) {
    const Node& node = program.node(id);
    const bool used = std::any_of(node.results.begin(), node.results.end(), [&](ValueId v) { return needed[v]; });
    for (ValueId input : node.inputs) needed[input] = needed[input] || used;
  }
  return needed;
}

// The root whose elements `id` is a view of.
ValueId root_of(const Graph& graph, ValueId id) {
  while (graph[id].producer != kNoNode) {
    const Node& node = graph.node(graph[id].producer);
    if (node.op->form != OpForm::view) break;
    id = node.inputs[0];
  }
  return id;
}

class Splitter {
 public:
  Splitter(const Graph& program, size_t results, NodeId begin, std::span<const ValueId> gradients)
      : program_(program),
        outputs_(program.outputs()),
        results_(results),
        begin_(begin),
        gradients_(gradients.begin(), gradients.end()),
        forward_(needed_by(program, outputs_.first(results))) {}

  // The values that cross from forward to backward, in order. Backward takes views of them itself.
  std::vector<ValueId> crossing() const {
    std::vector<ValueId> read;
    const auto note = [&](ValueId seen) {
      const ValueId id = seen == 0 || of_backward(seen) ? seen : root_of(program_, seen);
      const bool crosses = id != 0 && !program_[id].constant.defined() && !of_backward(id);
      if (crosses && std::find(read.begin(), read.end(), id) == read.end()) read.push_back(id);
    };
    const std::vector<bool> needed = needed_by(program_, outputs_.subspan(results_));
    for (NodeId id = program_.first(); id != kNoNode; id = program_.next(id)) {
      const Node& node = program_.node(id);
      const bool used = std::any_of(node.results.begin(), node.results.end(), [&](ValueId v) { return needed[v]; });
      if (!used || !of_backward(node.results[0])) continue;
      for (ValueId input : node.inputs) note(input);
    }
    for (ValueId id : outputs_.subspan(results_)) note(id);
    return read;
  }

  Graph forward(const std::vector<ValueId>& kept) const {
    Graph made = program_.copy();
    std::vector<ValueId> outputs(outputs_.begin(), outputs_.begin() + static_cast<ptrdiff_t>(results_));
    outputs.insert(outputs.end(), kept.begin(), kept.end());
    made.set_outputs(outputs);
    remove_dead_code(&made);
    std::vector<ValueId> inputs(made.inputs().begin(), made.inputs().end());
    std::erase_if(inputs, [&](ValueId id) { return is_gradient(id); });
    made.keep_inputs(inputs);
    return made;
  }

  Graph backward(const std::vector<ValueId>& read) const {
    Graph made = program_.copy();
    std::vector<ValueId> inputs;
    made.set_outputs({outputs_.begin() + static_cast<ptrdiff_t>(results_), outputs_.end()});
    for (ValueId id : read) {
      inputs.push_back(made.add_input(made[id].dtype, made[id].dims, made[id].device));
      made.replace(id, inputs.back());
    }
    inputs.insert(inputs.end(), gradients_.begin(), gradients_.end());
    remove_dead_code(&made);
    made.keep_inputs(inputs);
    return made;
  }

 private:
  bool is_gradient(ValueId id) const { return std::find(gradients_.begin(), gradients_.end(), id) != gradients_.end(); }
  bool of_backward(ValueId id) const {
    const NodeId producer = program_[id].producer;
    return producer == kNoNode ? is_gradient(id) : producer >= begin_ && !forward_[id];
  }

  const Graph& program_;
  std::span<const ValueId> outputs_;
  size_t results_;
  NodeId begin_;
  std::vector<ValueId> gradients_;
  std::vector<bool> forward_;
};

// Removes gradients that do not exist from a backward. Backward is linear in its gradients, so a node without any
// incoming gradient has no result.
class Remover {
 public:
  Remover(const Graph& backward, size_t first, const std::vector<bool>& comes)
      : made_(backward.copy()), first_(first), comes_(comes) {}

  PartOfBackward run() {
    states_.resize(made_.value_count(), State::other);
    for (size_t i = 0; i < comes_.size(); ++i) {
      states_[made_.inputs()[first_ + i]] = comes_[i] ? State::gradient : State::absent;
    }
    for (NodeId id = made_.first(); id != kNoNode;) {
      const NodeId after = made_.next(id);
      visit(id);
      id = after;
    }
    std::vector<ValueId> inputs(made_.inputs().begin(), made_.inputs().end()), outputs;
    std::vector<std::optional<size_t>> numbers(made_.outputs().size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (states_[made_.outputs()[i]] == State::absent) continue;
      numbers[i] = outputs.size();
      outputs.push_back(made_.outputs()[i]);
    }
    made_.set_outputs(std::move(outputs));
    remove_dead_code(&made_);
    std::erase_if(inputs, [&](ValueId id) { return states_[id] == State::absent; });
    made_.keep_inputs(std::move(inputs));
    return {std::move(made_), std::move(numbers)};
  }

 private:
  enum class State : uint8_t { other, gradient, absent };

  void visit(NodeId id) {
    const std::vector<ValueId> inputs = made_.node(id).inputs, results = made_.node(id).results;
    const auto has = [&](State state) {
      return std::any_of(inputs.begin(), inputs.end(), [&](ValueId v) { return states_[v] == state; });
    };
    if (!has(State::absent) && !has(State::gradient)) return;
    const State state = has(State::gradient) ? State::gradient : State::absent;
    for (ValueId result : results) states_[result] = state;
    if (!has(State::absent) || state == State::absent) return;
    const bool sum = made_.node(id).op == &op_row(OpId::add) && inputs.size() == 2;
    const ValueId present = states_[inputs[0]] == State::absent ? inputs.back() : inputs[0];
    if (sum && to_string(made_[present].dims) == to_string(made_[results[0]].dims)) {
      made_.replace(results[0], present);
    } else {
      fill_in(id, inputs);
    }
  }

  // Replaces missing inputs by zeros.
  void fill_in(NodeId id, std::vector<ValueId> inputs) {
    for (ValueId& input : inputs) {
      if (states_[input] != State::absent) continue;
      const Value value = made_[input];
      functors::Sized<FullAttributes> sized;
      sized.attributes.dtype = value.dtype;
      const symbolic::ArenaScope arena(made_.arena());
      sized.set(&sized.attributes.dims, std::span(value.dims.begin(), value.dims.end()));
      Node zeros;
      zeros.op = &op_row(OpId::full);
      zeros.scalars = {Scalar(0)};
      zeros.attributes.resize(sizeof(FullAttributes) / 8);
      std::memcpy(zeros.attributes.data(), &sized.attributes, sizeof(FullAttributes));
      if (sized.patches() != nullptr) zeros.patches = sized.patches()->list;
      zeros.device = value.device;
      input = made_.node(made_.insert(id, std::move(zeros))).results[0];
    }
    states_.resize(made_.value_count(), State::other);
    made_.set_inputs(id, std::move(inputs));
  }

  Graph made_;
  size_t first_;
  const std::vector<bool>& comes_;
  std::vector<State> states_;
};

}  // namespace

PartOfBackward part_of(const Graph& backward, size_t first, const std::vector<bool>& comes) {
  return Remover(backward, first, comes).run();
}

Halves split_program(const Graph& program, size_t results, NodeId begin, std::span<const ValueId> gradients,
                     const std::vector<bool>& written) {
  const Splitter splitter(program, results, begin, gradients);
  const std::vector<ValueId> read = splitter.crossing();
  std::vector<bool> is_argument;
  std::vector<ValueId> kept;
  for (ValueId id : read) {
    const auto at = std::find(program.inputs().begin(), program.inputs().end(), id);
    const bool input = at != program.inputs().end();
    is_argument.push_back(input && !written[static_cast<size_t>(at - program.inputs().begin())]);
    if (!is_argument.back()) kept.push_back(id);
  }
  return {splitter.forward(kept), splitter.backward(read), read, is_argument};
}

}  // namespace tenon::graph
