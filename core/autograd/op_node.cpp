#include "core/autograd/op_node.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/autograd/backward.h"
#include "core/autograd/engine.h"
#include "core/autograd/history.h"
#include "core/device/free_list.h"
#include "core/ops/ops.h"
#include "core/ops/sizes.h"
#include "core/tensor/recording.h"
#include "core/vm/storage.h"
#include "primitives/infer/size.h"
#include "primitives/text/format.h"

namespace tenon::autograd {

// Allocates and frees the memory of nodes.
class NodeMemory {
 public:
  struct Room {
    alignas(OpNode) std::byte bytes[sizeof(OpNode)];
  };
  struct End {
    void operator()(OpNode* node) const { destroy(node); }
  };
  // The caller owns the node until everything is saved, since saving may throw.
  static std::unique_ptr<OpNode, End> make(const OpInfo& op, const GradientRow& row) {
    return std::unique_ptr<OpNode, End>(new (memory::FreeList<Room>::make()) OpNode(op, row));
  }
  static void destroy(OpNode* node) {
    node->~OpNode();
    memory::FreeList<Room>::destroy(reinterpret_cast<Room*>(node));
  }
};

namespace {

bool shares_output(const OpCall& call, const Tensor& tensor) {
  return std::any_of(call.outputs.begin(), call.outputs.end(), [&](const Tensor& output) {
    return output.defined() && output.impl()->storage == tensor.impl()->storage;
  });
}

// The tensor to save, through a handle that leads to no node; otherwise a node could keep itself alive. A tensor that
// the call is about to overwrite is copied.
Tensor to_save(const OpCall& call, const Tensor& tensor) {
  if (shares_output(call, tensor)) return tenon::clone(tensor);
  const History* history = history_of(tensor);
  return history == nullptr || history->leaf ? tensor : without_history(tensor);
}

Needs needs_of(const GradientRow& row, std::span<const Edge> edges) {
  if (row.needs_count == 1) return row.needs[0];
  Needs all;
  for (size_t i = 0; i < edges.size() && i < row.needs_count; ++i) {
    if (!edges[i].node) continue;
    all.inputs |= row.needs[i].inputs;
    all.results |= row.needs[i].results;
  }
  return all;
}

}  // namespace

OpNode* OpNode::make(const OpCall& call, const GradientRow& row, std::span<const Edge> edges) {
  auto node = NodeMemory::make(*call.op, row);
  node->result_count_ = static_cast<uint32_t>(call.outputs.size());
  node->save_inputs(call, edges);
  if (row.attributes) node->keep_attributes(call.attributes);
  if (row.scalars) node->keep_scalars(call.scalars);
  if (call.patches != nullptr) node->patches_ = std::make_unique<const std::vector<Patch>>(call.patches->list);
  node->edges_.set_size(edges.size());
  std::copy(edges.begin(), edges.end(), node->edges_.data());
  node->number_after_edges();
  return node.release();
}

OpNode* OpNode::make_view(const OpInfo& op, const GradientRow& row, const void* attributes, const InputShape& input,
                          const Edge& edge) {
  auto node = NodeMemory::make(op, row);
  if (row.attributes) node->keep_attributes(attributes);
  node->edges_.set_size(1);
  node->edges_[0] = edge;
  node->shapes_.push_back(input);
  node->number_after_edges();
  return node.release();
}

void OpNode::keep_attributes(const void* attributes) {
  if (op_->attribute_bytes == 0) return;
  attributes_.set_size((op_->attribute_bytes + 7) / 8);
  std::memcpy(attributes_.data(), attributes, op_->attribute_bytes);
}

void OpNode::keep_scalars(std::span<const Scalar> scalars) {
  scalars_.set_size(scalars.size());
  std::copy(scalars.begin(), scalars.end(), scalars_.data());
}

void OpNode::save_inputs(const OpCall& call, std::span<const Edge> edges) {
  const Needs needs = needs_of(*row_, edges);
  for (size_t i = 0; i < call.inputs.size() && i < 32; ++i) {
    if ((needs.inputs >> i & 1) != 0 && call.inputs[i] != nullptr) inputs_ |= 1u << i;
  }
  results_ = call.outputs.size() < 32 ? needs.results & ((1u << call.outputs.size()) - 1) : needs.results;
  saved_.set_size(static_cast<size_t>(std::popcount(inputs_) + std::popcount(results_)));
  size_t at = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!holds_input(i)) continue;
    saved_[at++].keep(to_save(call, *call.inputs[i]), op_->name);
  }
}

void OpNode::take_results(const OpCall& call) {
  auto at = static_cast<size_t>(std::popcount(inputs_));
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (i < 32 && (results_ >> i & 1) != 0) {
      saved_[at++].keep(without_history(call.outputs[i]), op_->name);
    }
  }
  keep_shapes(call);
}

namespace {

// True if `input` has other sizes than the result, as far as the program knows.
bool other_sizes(const Tensor& input, const Tensor& result) {
  if (!is_open(input) && !is_open(result)) return !(input.impl()->dims == result.impl()->dims);
  return !identical(sizes(input), sizes(result));
}

}  // namespace

void OpNode::keep_shapes(const OpCall& call) {
  const TensorImpl& result = *call.outputs[0].impl();
  bool same = true;
  for (size_t i = 0; i < call.inputs.size() && same; ++i) {
    if (!edges_[i].node) continue;
    const TensorImpl& input = *call.inputs[i]->impl();
    same =
        input.dtype == result.dtype && input.device == result.device && !other_sizes(*call.inputs[i], call.outputs[0]);
  }
  if (same) return;
  shapes_.resize(call.inputs.size());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    const TensorImpl& input = *call.inputs[i]->impl();
    shapes_[i] = {input.dims, input.dtype, input.device};
    if (is_open(*call.inputs[i])) shapes_[i].open = std::make_shared<const SymDims>(sizes(*call.inputs[i]));
  }
}

Tensor OpNode::saved_input(size_t i) const {
  const auto at = static_cast<size_t>(std::popcount(inputs_ & ((1u << i) - 1)));
  const Tensor tensor = saved_[at].get(op_->name, "an argument");
  const bool plain = !edges_[i].node && history_of(tensor) == nullptr;
  if (plain || !creates_graph()) return tensor;
  const History* history = history_of(tensor);
  if (history != nullptr && history->edge.node.get() == edges_[i].node.get()) return tensor;
  return with_edge(tensor, edges_[i]);
}

Tensor OpNode::saved_result(size_t i) const {
  const auto at = static_cast<size_t>(std::popcount(inputs_) + std::popcount(results_ & ((1u << i) - 1)));
  const Tensor tensor = saved_[at].get(op_->name, "a result");
  if (!creates_graph() || !is_floating(tensor.dtype())) return tensor;
  return with_edge(tensor, {NodeRef::share(const_cast<OpNode*>(this)), static_cast<uint32_t>(i)});
}

void OpNode::run(std::span<const Tensor> of_results, uint64_t wanted, std::span<Tensor> of_inputs) {
  if (dropped_) {
    throw Error(Subject{"backward"}, Code::invalid_argument,
                fmt::format("what {} saved for its gradient was freed by an earlier backward.", op_->name),
                "Call the first backward with retain_graph.");
  }
  const Backward backward(*this, of_results, wanted, of_inputs);
  const MadeEverywhere scope(values_elsewhere.load(std::memory_order_relaxed) &&
                             std::any_of(of_results.begin(), of_results.end(), is_elsewhere));
  row_->function(backward);
  for (size_t i = 0; i < of_inputs.size(); ++i) {
    if ((wanted >> i & 1) == 0 || of_inputs[i].defined()) continue;
    throw Error(Subject{op_->name}, Code::unsupported,
                fmt::format("argument {} requires a gradient, which this op does not have for it.", i));
  }
}

void OpNode::drop_saved() {
  if (saved_.size() == 0) return;
  dropped_ = true;
  for (SavedTensor& saved : saved_.items()) saved.drop();
}

void OpNode::destroy() { NodeMemory::destroy(this); }

}  // namespace tenon::autograd
