// History: what a tensor holds for gradients, where it came from. Internal.
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

// One op of the chain of views that leads from a base to a tensor.
struct ViewStep {
  std::shared_ptr<const ViewStep> before;  // null: the first
  const OpInfo* op = nullptr;
  std::unique_ptr<std::byte[]> attributes;
  TensorMeta input;               // of the op
  std::vector<SymDim> open = {};  // sizes and attributes of a recording of which the numbers here are hints
};

// That a tensor is a view of one that has a history. A write through either gives both another one.
struct ViewOf {
  Tensor base;  // is no view itself, as far as gradients know
  std::shared_ptr<const ViewStep> last;
  std::atomic<uint64_t> generation{0};  // of the base's history, from which that of the view was made
};

struct History final : GradientState {
  bool leaf = false;
  Edge edge;                           // of a leaf: to the node that accumulates; no node: it wants no gradient now
  std::shared_ptr<GradientSlot> slot;  // of a leaf, and after retain_grad()
  bool retains = false;                // after retain_grad()
  std::unique_ptr<ViewOf> view;
  std::atomic<uint64_t> generation{0};  // counts how often a write has replaced `edge`
};

inline History* history_of(const Tensor& tensor) { return static_cast<History*>(tensor.impl()->gradient); }

// The history of `tensor`, made now if it has none.
History& need_history(const Tensor& tensor);

// Where the gradient of `tensor` goes. That of a view follows its base, so it may be made anew here.
const Edge& edge_of(const Tensor& tensor);

// Gives a tensor another edge, after a write. A gradient that is kept of it is kept of its new elements from now on.
void move_edge(History* history, Edge edge);

// A tensor over the elements of `tensor` without a history.
Tensor without_history(const Tensor& tensor);

// A tensor over the elements of `tensor` whose gradient goes to `edge`.
Tensor with_edge(const Tensor& tensor, const Edge& edge);

}  // namespace tenon::autograd
