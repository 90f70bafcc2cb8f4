#include "sdk/onnx/importer/node_order.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "primitives/text/format.h"
#include "primitives/text/visible.h"
#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {
namespace {

namespace proto = onnx_proto;
using Names = std::unordered_set<std::string_view>;

// Calls `visit(name)` for the values that the node reads, and for values of outer graphs that the graphs in its
// attributes read. `inner` are the names that the graphs between the outermost node and this one define.
template <class Visit>
void for_each_read(const proto::NodeProto& node, std::vector<Names>* inner, const Visit& visit) {
  const auto read = [&](std::string_view name) {
    const auto has = [&](const Names& names) { return names.count(name) != 0; };
    if (!name.empty() && std::none_of(inner->begin(), inner->end(), has)) visit(name);
  };
  std::for_each(node.input.begin(), node.input.end(), read);
  for (const proto::AttributeProto& attribute : node.attribute) {
    if (!attribute.g) continue;
    const proto::GraphProto& graph = *attribute.g;
    Names& names = inner->emplace_back();
    for (const proto::ValueInfoProto& input : graph.input) names.insert(input.name);
    for (const proto::TensorProto& weight : graph.initializer) names.insert(weight.name);
    for (const proto::SparseTensorProto& weight : graph.sparse_initializer) {
      if (weight.values) names.insert(weight.values->name);
    }
    for (const proto::NodeProto& each : graph.node) names.insert(each.output.begin(), each.output.end());
    for (const proto::NodeProto& each : graph.node) for_each_read(each, inner, visit);
    for (const proto::ValueInfoProto& output : graph.output) read(output.name);
    inner->pop_back();
  }
}

class Order {
 public:
  Order(const std::vector<proto::NodeProto>& nodes, const std::function<bool(std::string_view)>& is_there,
        const std::string& inside)
      : nodes_(nodes), inside_(inside), reads_(nodes.size()) {
    std::unordered_map<std::string_view, size_t> makers;
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (std::string_view name : nodes[i].output) {
        if (!name.empty() && !is_there(name)) makers.try_emplace(name, i);
      }
    }
    std::vector<Names> inner;
    for (size_t i = 0; i < nodes.size(); ++i) {
      for_each_read(nodes[i], &inner, [&](std::string_view name) {
        const auto maker = makers.find(name);
        if (maker == makers.end()) return;
        reads_[i].push_back(maker->second);
        in_order_ = in_order_ && maker->second < i;
      });
    }
  }

  std::vector<size_t> sorted() {
    std::vector<size_t> order;
    if (in_order_) {
      order.resize(nodes_.size());
      std::iota(order.begin(), order.end(), 0);
      return order;
    }
    order.reserve(nodes_.size());
    states_.assign(nodes_.size(), State::waits);
    for (size_t i = 0; i < nodes_.size(); ++i) add_with_reads(i, &order);
    return order;
  }

 private:
  enum class State : uint8_t { waits, open, done };
  struct Step {
    size_t node, next;  // `next`: the number of the read to visit next
  };

  // Adds a node after the nodes that it reads. Not recursive, because a model may be one chain of a million nodes.
  void add_with_reads(size_t first, std::vector<size_t>* order) {
    if (states_[first] == State::done) return;
    std::vector<Step> steps{{first, 0}};
    states_[first] = State::open;
    while (!steps.empty()) {
      Step& step = steps.back();
      if (step.next == reads_[step.node].size()) {
        states_[step.node] = State::done;
        order->push_back(step.node);
        steps.pop_back();
        continue;
      }
      const size_t read = reads_[step.node][step.next++];
      if (states_[read] == State::open) refuse_cycle(steps, read);
      if (states_[read] == State::waits) {
        states_[read] = State::open;
        steps.push_back({read, 0});
      }
    }
  }

  [[noreturn]] void refuse_cycle(const std::vector<Step>& steps, size_t begin) const {
    constexpr size_t kMostNamed = 8;
    const auto from = std::find_if(steps.begin(), steps.end(), [&](const Step& step) { return step.node == begin; });
    std::string cycle;
    for (auto step = from; step != steps.end(); ++step) {
      if (static_cast<size_t>(step - from) == kMostNamed) {
        cycle += fmt::format(" and {} more nodes read", steps.end() - step);
        break;
      }
      cycle += fmt::format("{}{}", cycle.empty() ? "" : " reads ", name_of(step->node));
    }
    malformed(fmt::format("its nodes form a cycle{}: {} reads {}", inside_.empty() ? "" : " in " + inside_, cycle,
                          name_of(begin)));
  }

  std::string name_of(size_t i) const {
    const proto::NodeProto& node = nodes_[i];
    return fmt::format("node {} ({})", i, visible(node.name.empty() ? node.op_type : node.name));
  }

  const std::vector<proto::NodeProto>& nodes_;
  const std::string& inside_;
  std::vector<std::vector<size_t>> reads_;  // by node: the nodes whose results it reads
  bool in_order_ = true;
  std::vector<State> states_;
};

}  // namespace

std::vector<size_t> node_order(const std::vector<proto::NodeProto>& nodes,
                               const std::function<bool(std::string_view)>& is_there, const std::string& inside) {
  return Order(nodes, is_there, inside).sorted();
}

}  // namespace tenon::onnx
