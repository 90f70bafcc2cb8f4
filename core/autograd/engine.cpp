#include "core/autograd/engine.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "core/autograd/anomaly.h"
#include "core/autograd/inline_list.h"
#include "core/autograd/interpreter.h"
#include "core/autograd/pending.h"
#include "core/background/cancellation.h"
#include "core/ops/ops.h"
#include "core/tensor/recording.h"
#include "primitives/text/format.h"

namespace tenon::autograd {
namespace {

// Sets the interpreter and mode of a backward for its life.
class BackwardScope {
 public:
  explicit BackwardScope(bool create_graph)
      : gradients_(interpreter_below()),
        scope_(create_graph ? static_cast<Interpreter&>(gradients_) : gradients_.below()),
        creating_(create_graph) {}
  BackwardScope(const BackwardScope&) = delete;
  BackwardScope& operator=(const BackwardScope&) = delete;

 private:
  GradientInterpreter gradients_;
  InterpreterScope scope_;
  ContextScope<&CallContext::creating_graph> creating_;
};

using NodeSet = std::unordered_set<const Node*>;

// Every node behind `roots`, without recursion.
std::vector<Node*> nodes_behind(std::span<const Root> roots) {
  std::vector<Node*> nodes;
  NodeSet met;
  const auto meet = [&](const Edge& edge) {
    if (edge.node && met.insert(edge.node.get()).second) nodes.push_back(edge.node.get());
  };
  for (const Root& root : roots) meet(root.edge);
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const Edge& edge : nodes[i]->edges()) meet(edge);
  }
  return nodes;
}

// The nodes that lead to a captured gradient.
NodeSet nodes_needed(std::span<const Root> roots, std::span<const Capture> captures) {
  std::vector<Node*> nodes = nodes_behind(roots);
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->number() < b->number(); });
  NodeSet needed;
  for (const Capture& capture : captures) needed.insert(capture.edge.node.get());
  for (const Node* node : nodes) {
    const std::span<const Edge> edges = node->edges();
    const auto leads = [&](const Edge& edge) { return edge.node && needed.count(edge.node.get()) != 0; };
    if (std::any_of(edges.begin(), edges.end(), leads)) needed.insert(node);
  }
  return needed;
}

// Passes the gradients of the results to the hooks of a node, which may replace them.
void run_hooks(NodeExtras& extras, const Node& node, std::span<Tensor> gradients) {
  std::unique_lock lock(extras.mutex);
  const auto kept = extras.kept;
  lock.unlock();
  for (const Hook& hook : extras.hooks->functions()) {
    Tensor& gradient = gradients[hook.index];
    if (!gradient.defined()) continue;
    if (gradient.impl()->storage == nullptr) {
      throw Error(Subject{"backward"}, Code::invalid_argument,
                  fmt::format("a tensor that {} made has a hook, which a recording cannot hold.", node.name()),
                  "Remove the hook, or run this step without recording it.");
    }
    const Tensor replaced = hook.function(gradient);
    if (!replaced.defined()) continue;
    if (!(replaced.dims() == gradient.dims()) || replaced.dtype() != gradient.dtype()) {
      throw Error(
          Subject{"backward"}, Code::invalid_argument,
          fmt::format("a hook on a tensor that {} made gave a gradient of {} {}, not of {} {}.", node.name(),
                      dtype_name(replaced.dtype()), replaced.dims(), dtype_name(gradient.dtype()), gradient.dims()));
    }
    gradient = replaced;
  }
  for (const auto& [index, slot] : kept) {
    const std::lock_guard slot_lock(slot->mutex);
    if (!gradients[index].defined()) continue;
    slot->gradient = slot->gradient.defined() ? tenon::add(slot->gradient, gradients[index]) : gradients[index];
  }
}

class Engine {
 public:
  Engine(std::span<const Root> roots, std::span<Capture> captures, const EngineOptions& options)
      : captures_(captures), options_(options), boundary_(call_context.boundary) {
    if (options.only_captures) needed_ = nodes_needed(roots, captures);
    for (Capture& capture : captures) captured_.emplace(capture.edge.node.get(), &capture);
    for (const Root& root : roots) pending_.add(root.edge, root.gradient);
    if (values_elsewhere.load(std::memory_order_relaxed)) count_uses_of_leaves(roots);
  }

  void run() {
    while (!pending_.empty()) {
      if (CancellationScope::cancelled_here())
        throw Error(Subject{"backward"}, Code::cancelled, "The program cancelled this run.");
      Turn turn = pending_.take();
      run_node(turn);
    }
  }

 private:
  // Leaves have the smallest numbers, so they would run last. A gradient elsewhere starts work on the other ranks,
  // which should begin early, so such leaves run as soon as their gradient is complete.
  void count_uses_of_leaves(std::span<const Root> roots) {
    for (const Node* node : nodes_behind(roots)) {
      for (const Edge& edge : node->edges()) {
        if (edge.node && edge.node->accumulates()) ++uses_left_[edge.node.get()];
      }
    }
  }
  void note_uses(std::span<const Edge> edges) {
    for (const Edge& edge : edges) {
      const auto leaf = edge.node ? uses_left_.find(edge.node.get()) : uses_left_.end();
      if (leaf != uses_left_.end() && --leaf->second == 0) pending_.hurry(edge.node.get());
    }
  }

  uint64_t wanted_of(const Node& node) const {
    uint64_t wanted = 0;
    const std::span<const Edge> edges = node.edges();
    for (size_t i = 0; i < edges.size(); ++i) {
      const Node* next = edges[i].node.get();
      if (next != nullptr && (!options_.only_captures || needed_.count(next) != 0)) wanted |= wanted_bit(i);
    }
    return wanted;
  }

  void capture(const Node* node, std::span<Tensor> gradients) {
    const auto [first, last] = captured_.equal_range(node);
    for (auto at = first; at != last; ++at) at->second->gradient = gradients[at->second->edge.index];
  }

  // `node` is outside the boundary.
  void end_at(const Node& node) const {
    if (captured_.count(&node) != 0) return;
    throw Error(Subject{"backward"}, Code::invalid_argument,
                fmt::format("it reaches a tensor that {} made outside of the function that is recorded.", node.name()),
                "Call backward outside of the function, or use detach() of the tensor inside.");
  }

  void run_node(Turn& turn) {
    Node& node = *turn.node.get();
    const std::span<Tensor> gradients = turn.gradients();
    if (NodeExtras* extras = node.extras(); extras != nullptr) [[unlikely]] {
      if (!options_.hooks_later || captured_.count(&node) == 0) run_hooks(*extras, node, gradients);
    }
    if (!captures_.empty()) capture(&node, gradients);
    if (boundary_ != nullptr && boundary_->outside(node)) [[unlikely]]
      return end_at(node);
    if (node.accumulates()) {
      if (!options_.only_captures) node.run(gradients, 0, {});
      return;
    }
    const uint64_t wanted = wanted_of(node);
    if (wanted == 0) return;
    const std::span<const Edge> edges = node.edges();
    InlineList<Tensor, 4> of_inputs;
    of_inputs.set_size(edges.size());
    try {
      node.run(gradients, wanted, of_inputs.items());
    } catch (const Error& error) {
      throw Error(error.status().with_context(
          fmt::format("  while computing the gradient of {}{}", node.name(), noted_call(node))));
    }
    if (call_context.anomaly_notes != nullptr) [[unlikely]]
      look_for_anomalies(node, of_inputs.items());
    if (!options_.retain_graph) node.drop_saved();
    for (size_t i = 0; i < edges.size(); ++i) {
      if (of_inputs[i].defined() && (wanted & wanted_bit(i)) != 0) pending_.add(edges[i], std::move(of_inputs[i]));
    }
    if (!uses_left_.empty()) note_uses(edges);
  }

  std::span<Capture> captures_;
  EngineOptions options_;
  const Boundary* boundary_;
  NodeSet needed_;
  std::unordered_multimap<const Node*, Capture*> captured_;
  std::unordered_map<const Node*, size_t> uses_left_;
  Pending pending_;
};

}  // namespace

std::vector<bool> reached(const Edge& from, std::span<const Capture> captures) {
  const Root root{from, Tensor()};
  const std::vector<Node*> behind = nodes_behind({&root, 1});
  const NodeSet nodes(behind.begin(), behind.end());
  std::vector<bool> reaches;
  for (const Capture& capture : captures) reaches.push_back(nodes.count(capture.edge.node.get()) != 0);
  return reaches;
}

bool creates_graph() { return call_context.creating_graph; }

void run_backward(std::span<const Root> roots, std::span<Capture> captures, const EngineOptions& options) {
  const BackwardScope scope(options.create_graph);
  Engine(roots, captures, options).run();
}

}  // namespace tenon::autograd
