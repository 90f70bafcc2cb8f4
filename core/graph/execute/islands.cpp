#include "core/graph/execute/islands.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>

#include "core/device/device_state.h"
#include "core/graph/execute/cut.h"
#include "core/graph/execute/liveness.h"
#include "core/graph/execute/roots.h"
#include "core/graph/execute/table.h"
#include "loader/loader.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

bool may_be_node(const Step& step) {
  return step.op != nullptr && (step.op->form == OpForm::elementwise || step.op->form == OpForm::kernel);
}

class Islands {
 public:
  Islands(Executable* program, DeviceState* device) : program_(*program), device_(device), roots_(*program) {}

  void run() {
    find_nodes();
    if (nodes_.empty()) return;
    find_readers();
    const std::vector<uint32_t> claims = ask();
    for (const std::vector<uint32_t>& part : cut_islands(predecessors(), claims)) compile(part);
    if (made_.empty()) return;
    put_in_place();
    drop_unneeded_steps(&program_);
    find_last_uses(&program_);
  }

 private:
  uint32_t step_count() const { return static_cast<uint32_t>(program_.steps.size()); }

  void find_nodes() {
    node_of_.assign(step_count(), kNone);
    island_of_.assign(step_count(), kNone);
    for (uint32_t i = 0; i < step_count(); ++i) {
      if (!may_be_node(program_.steps[i])) continue;
      Result<TableNode> node = make_node(program_, roots_, device_, i);
      if (!node.ok()) {
        program_.steps[i].alone = node.status().message();
        continue;
      }
      node_of_[i] = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back(std::move(node.value()));
    }
  }

  // Views are not readers: a reader of a view counts as a reader of its root.
  void find_readers() {
    readers_.resize(program_.values.size());
    for (uint32_t i = 0; i < step_count(); ++i) {
      if (is_view(program_.steps[i])) continue;
      for (uint32_t id : program_.steps[i].inputs) readers_[roots_.root(id)].push_back(i);
    }
    given_.assign(program_.values.size(), false);
    for (uint32_t id : program_.outputs) given_[roots_.root(id)] = true;
  }

  // True if a result of the program is in `root`, or if a step that is not `inside` reads it.
  bool wanted(uint32_t root, const std::function<bool(uint32_t step)>& inside) const {
    const std::vector<uint32_t>& readers = readers_[root];
    return given_[root] || std::any_of(readers.begin(), readers.end(), [&](uint32_t step) { return !inside(step); });
  }

  // The device's answer by step: 0, or the number of an island.
  std::vector<uint32_t> ask() {
    std::vector<const TableNode*> all;
    for (const TableNode& node : nodes_) all.push_back(&node);
    const auto inside = [&](uint32_t step) { return node_of_[step] != kNone; };
    const Table table(program_, all, [&](uint32_t root) { return wanted(root, inside); });
    std::vector<ep_graph_answer> answers(nodes_.size());
    ep_error* error = nullptr;
    const ep_status code = device_->ops.graph_capability(device_->handle, &table.desc(), answers.data(), &error);
    throw_if_error(loader::take_error(
        code, error, fmt::format("asking {} which ops it takes in a graph", device_->opened->spelling)));
    std::vector<uint32_t> claims(step_count(), 0);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      claims[nodes_[i].step] = answers[i].island;
      if (answers[i].island != 0) continue;
      const ep_string reason = answers[i].reason;
      program_.steps[nodes_[i].step].alone =
          reason.size == 0 ? "the device does not take it" : std::string(reason.data, reason.size);
    }
    return claims;
  }

  // By step: the steps that must run before it. A view counts as a reader of its root. No step depends on a view,
  // because a view of an island's value is made after the island has run.
  std::vector<std::vector<uint32_t>> predecessors() const {
    std::vector<std::vector<uint32_t>> preds(step_count());
    std::vector<uint32_t> maker(program_.values.size(), kNone);
    for (uint32_t i = 0; i < step_count(); ++i) {
      const Step& step = program_.steps[i];
      for (uint32_t id : step.inputs) {
        if (maker[roots_.root(id)] != kNone) preds[i].push_back(maker[roots_.root(id)]);
      }
      for (uint32_t id : step.outputs) {
        if (roots_.root(id) == id) maker[id] = i;
      }
    }
    return preds;
  }

  void compile(const std::vector<uint32_t>& part) {
    std::vector<const TableNode*> nodes;
    for (uint32_t step : part) nodes.push_back(&nodes_[node_of_[step]]);
    const auto inside = [&](uint32_t step) { return std::binary_search(part.begin(), part.end(), step); };
    const Table table(program_, nodes, [&](uint32_t root) { return wanted(root, inside); });
    if (table.outputs().empty()) return;
    Result<std::shared_ptr<CompiledGraph>> compiled = compile_graph(device_, table.desc());
    if (!compiled.ok()) return refused(part, compiled.status());
    for (const TableNode* node : nodes) compiled.value()->nodes.push_back(node->name);
    compiled.value()->constants = std::make_shared<std::vector<Tensor>>(table.constants());
    for (uint32_t step : part) island_of_[step] = static_cast<uint32_t>(made_.size());
    Step& made = made_.emplace_back();
    made.inputs = table.inputs();
    made.outputs = table.outputs();
    for (uint32_t id : made.inputs) made.island_inputs.push_back(program_.values[id].meta);
    for (uint32_t id : made.outputs) made.island_outputs.push_back(program_.values[id].meta);
    made.device = device_;
    made.label = label(part);
    made.island = std::move(compiled.value());
  }

  void refused(const std::vector<uint32_t>& part, const Status& why) {
    if (why.code() != Code::unsupported) throw Error(why);
    for (uint32_t step : part) {
      program_.steps[step].alone =
          fmt::format("its graph of {} was refused: {}", nodes_text(part.size()), why.message());
    }
  }

  static std::string nodes_text(size_t count) { return fmt::format("{} node{}", count, count == 1 ? "" : "s"); }

  // Example: "graph of 12 nodes, node 3 (/first/Gather) to node 14 (/last/Add)"
  uint32_t label(const std::vector<uint32_t>& part) {
    const std::string& first = (*program_.labels)[program_.steps[part.front()].label];
    const std::string& last = (*program_.labels)[program_.steps[part.back()].label];
    std::string text = fmt::format("the graph of {}", nodes_text(part.size()));
    if (!first.empty()) text += fmt::format(", {}", first);
    if (!last.empty() && last != first) text += fmt::format(" to {}", last);
    program_.labels->add(std::move(text));
    return static_cast<uint32_t>(program_.labels->size() - 1);
  }

  // Replaces the islands' steps by the islands, in topological order.
  void put_in_place() {
    std::vector<Step> ordered;
    for (uint32_t step : in_order(groups())) {
      const uint32_t island = island_of_[step];
      ordered.push_back(std::move(island == kNone ? program_.steps[step] : made_[island]));
    }
    program_.steps = std::move(ordered);
  }

  // By step: the last step of its island, or the step itself.
  std::vector<uint32_t> groups() const {
    std::vector<uint32_t> last(made_.size()), group(step_count());
    for (uint32_t i = 0; i < step_count(); ++i) {
      if (island_of_[i] != kNone) last[island_of_[i]] = i;
    }
    for (uint32_t i = 0; i < step_count(); ++i) group[i] = island_of_[i] == kNone ? i : last[island_of_[i]];
    return group;
  }

  // The groups in topological order; among ready groups, in recorded order. So a view comes before its readers, because
  // it depends on nothing more than they do and was recorded before them.
  std::vector<uint32_t> in_order(const std::vector<uint32_t>& group) const {
    const std::vector<std::vector<uint32_t>> preds = predecessors();
    std::vector<std::vector<uint32_t>> followers(step_count());
    std::vector<uint32_t> missing(step_count(), 0), order;
    for (uint32_t i = 0; i < step_count(); ++i) {
      for (uint32_t pred : preds[i]) {
        if (group[pred] == group[i]) continue;
        followers[group[pred]].push_back(group[i]);
        ++missing[group[i]];
      }
    }
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
    for (uint32_t i = 0; i < step_count(); ++i) {
      if (group[i] == i && missing[i] == 0) ready.push(i);
    }
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (uint32_t next : followers[order.back()]) {
        if (--missing[next] == 0) ready.push(next);
      }
    }
    return order;
  }

  Executable& program_;
  DeviceState* device_;
  const Roots roots_;
  std::vector<TableNode> nodes_;
  std::vector<uint32_t> node_of_;               // by step: its index in nodes_, or kNone
  std::vector<std::vector<uint32_t>> readers_;  // by root: steps
  std::vector<bool> given_;                     // by root: true if a result of the program is in it
  std::vector<Step> made_;                      // the islands
  std::vector<uint32_t> island_of_;             // by step: its index in made_, or kNone
};

}  // namespace

void take_islands(Executable* program) {
  if (loader::settings().graphs == loader::Graphs::off) return;
  std::vector<DeviceState*> devices;
  for (const Slot& slot : program->values) {
    if (slot.device != nullptr && std::find(devices.begin(), devices.end(), slot.device) == devices.end())
      devices.push_back(slot.device);
  }
  for (DeviceState* device : devices) {
    if (takes_graphs(device)) Islands(program, device).run();
  }
}

}  // namespace tenon::graph
