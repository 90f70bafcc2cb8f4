// History: what a tensor stores for gradients: the node that made it and its base if it is a view. Internal.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/autograd/node.h"
#include "core/ops/op_call.h"
#include "core/ops/sizes.h"
#include "core/tensor/gradient_state.h"

namespace tenon::autograd {

// One op in the chain of views from a base to a tensor.
struct ViewStep {
  std::shared_ptr<const ViewStep> before;  // null: this is the first step
  const OpInfo* op = nullptr;
  std::unique_ptr<std::byte[]> attributes;
  TensorMeta input;               // metadata of the op's input
  std::vector<SymDim> open = {};  // sizes and attributes of a recording; the numbers here are their hints
};

// Marks a tensor as a view of a tensor that has a history. A write through either of the two replaces the history of
// both.
struct ViewOf {
  Tensor base;  // a tensor that is not itself a view for gradients
  std::shared_ptr<const ViewStep> last;
  std::atomic<uint64_t> generation{0};  // generation of the base's history from which the view's edge was made
};

struct History final : GradientState {
  bool leaf = false;
  Edge edge;  // a leaf's edge leads to the node that accumulates; no node: the tensor wants no gradient now
  std::shared_ptr<GradientSlot> slot;  // for leaves, and after retain_grad()
  bool retains = false;                // set by retain_grad()
  std::unique_ptr<ViewOf> view;
  std::atomic<uint64_t> generation{0};  // counts how often a write has replaced `edge`
};

inline History* history_of(const Tensor& tensor) { return static_cast<History*>(tensor.impl()->gradient); }

// The history of `tensor`; creates it if there is none.
History& need_history(const Tensor& tensor);

// The edge along which the gradient of `tensor` flows. A view's edge follows its base, so this call may recompute it.
const Edge& edge_of(const Tensor& tensor);

// Replaces the edge of a tensor after a write. From now on a retained gradient is the gradient of the new elements.
void move_edge(History* history, Edge edge);

// A tensor over the elements of `tensor` without a history.
Tensor without_history(const Tensor& tensor);

// A tensor over the elements of `tensor` whose gradient flows to `edge`.
Tensor with_edge(const Tensor& tensor, const Edge& edge);

}  // namespace tenon::autograd
