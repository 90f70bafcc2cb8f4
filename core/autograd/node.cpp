#include "core/autograd/node.h"

#include <algorithm>

namespace tenon::autograd {
namespace {

thread_local constinit uint64_t last_number = 0;
// Nodes without handles that this thread still has to destroy. The outermost release destroys them in a loop.
thread_local constinit Node* first_released = nullptr;
thread_local constinit bool destroying = false;

}  // namespace

Node::~Node() { delete extras_.load(std::memory_order_relaxed); }

void Node::number_after_edges() {
  uint64_t behind = last_number;
  for (const Edge& edge : edges()) {
    if (edge.node) behind = std::max(behind, edge.node->number_);
  }
  number_ = last_number = behind + 1;
}

NodeExtras& Node::need_extras() {
  NodeExtras* known = extras();
  if (known != nullptr) return *known;
  auto made = std::make_unique<NodeExtras>();
  if (extras_.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *known;
}

void NodeRef::release(Node* node) {
  if (node->count_.load(std::memory_order_acquire) != 1 && node->count_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  node->next_released_ = first_released;
  first_released = node;
  if (destroying) return;
  destroying = true;
  while (first_released != nullptr) std::exchange(first_released, first_released->next_released_)->destroy();
  destroying = false;
}

}  // namespace tenon::autograd
