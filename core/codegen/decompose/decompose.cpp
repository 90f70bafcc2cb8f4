#include "core/codegen/decompose/decompose.h"

#include <string>
#include <vector>

#include "core/codegen/axes/access.h"
#include "core/graph/recorder.h"
#include "core/ops/decompose/decompose.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

using graph::Graph;
using graph::kNoNode;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

// Records one node again as its decomposition.
class Part {
 public:
  Part(Graph* graph, NodeId id) : graph_(*graph), id_(id), node_(graph->node(id)) {}

  void run() {
    std::vector<ValueId> inputs;
    const Graph part = record(&inputs);
    if (part.outputs().empty()) return;
    std::vector<ValueId> here(part.value_count(), 0);
    for (size_t i = 0; i < inputs.size(); ++i) here[part.inputs()[i]] = inputs[i];
    for (ValueId id = 1; id < part.value_count(); ++id) {
      if (part[id].constant.defined()) here[id] = graph_.add_constant(part[id].constant);
    }
    for (NodeId id = part.first(); id != kNoNode; id = part.next(id)) {
      Node copy = part.node(id);
      for (ValueId& input : copy.inputs) input = here[input];
      copy.results.clear();
      copy.label = node_.label;
      const NodeId made = graph_.insert(id_, std::move(copy), part.node(id).results.size());
      for (size_t i = 0; i < part.node(id).results.size(); ++i) {
        here[part.node(id).results[i]] = graph_.node(made).results[i];
      }
    }
    const ValueId old = graph_.node(id_).results[0];
    graph_.replace(old, here[part.outputs()[0]]);
    graph_.erase(id_);
  }

 private:
  // Each size that is an expression becomes a symbol of the recording. Returns an empty graph if the decomposition
  // depends on hints.
  Graph record(std::vector<ValueId>* inputs) {
    Graph none("none");
    graph::Recorder recorder{Device(node_device())};
    const InterpreterScope scope(recorder);
    std::vector<Tensor> tensors(node_.inputs.size());
    const DType dtype = graph_[node_.results[0]].dtype;
    const bool narrow = dtype == DType::f16 || dtype == DType::bf16;
    std::vector<const Tensor*> pointers(node_.inputs.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (node_.inputs[i] == 0) continue;
      const graph::Value& value = graph_[node_.inputs[i]];
      Dims hints;
      std::vector<std::string> names;
      for (const SymDim size : dims_of(graph_, node_.inputs[i])) {
        const std::optional<int64_t> hint = graph_.arena().hint(size);
        if (!hint) return none;
        hints.push_back(*hint);
        names.push_back(size.is_number() ? std::string() : fmt::format("size {}", size.word()));
      }
      const Tensor input = recorder.input(value.dtype, hints, names, {}, Device(value.device));
      tensors[i] = narrow ? cast(input, DType::f32) : input;  // computed in f32 and rounded once, like the primitive
      pointers[i] = &tensors[i];
      inputs->push_back(node_.inputs[i]);
    }
    const size_t known = recorder.arena().constraints().size();
    Tensor made;
    OpCall call;
    call.op = node_.op;
    call.inputs = pointers;
    call.scalars = node_.scalars;
    call.attributes = node_.attributes.data();
    call.outputs = {&made, 1};
    call.precision = node_.precision;
    ops::decompose(call);
    if (narrow) made = cast(made, dtype);
    const bool general = recorder.arena().constraints().size() == known;
    Graph part = recorder.finish(call.outputs);
    for (NodeId id = part.first(); id != kNoNode; id = part.next(id)) {
      if (!part.node(id).patches.empty()) return none;
    }
    return general ? std::move(part) : std::move(none);
  }

  DeviceState* node_device() const { return graph_[node_.results[0]].device; }

  Graph& graph_;
  const NodeId id_;
  const Node node_;  // a copy, since the graph grows
};

}  // namespace

void decompose_rows(Graph* graph) {
  for (NodeId id = graph->first(); id != kNoNode;) {
    const NodeId next = graph->next(id);
    if (access_of(*graph, id).role == Role::rows) Part(graph, id).run();
    id = next;
  }
}

}  // namespace tenon::codegen
