// Node: the backward step of one call of forward. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace tenon::autograd {

class Node;

// A counted handle to a node, or to none. Dropping the last handle to a chain of nodes uses a loop, not a recursion.
class NodeRef {
 public:
  NodeRef() = default;
  explicit NodeRef(Node* node) : node_(node) {}  // takes over one count
  // A new handle to `node`.
  static NodeRef share(Node* node);
  NodeRef(const NodeRef& other);
  NodeRef(NodeRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  NodeRef& operator=(NodeRef other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodeRef() {
    if (node_ != nullptr) release(node_);
  }

  Node* get() const { return node_; }
  Node* operator->() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }

 private:
  static void release(Node* node);

  Node* node_ = nullptr;
};

// The destination of a tensor's gradient: result `index` of `node`. Without a node the tensor wants no gradient.
struct Edge {
  NodeRef node;
  uint32_t index = 0;
};

// Functions of the user in the order in which they were added. remove() takes the number that add() returned.
template <class Function>
class HookList {
 public:
  // Returns a number for remove().
  uint64_t add(Function function) {
    const std::lock_guard lock(mutex_);
    hooks_.emplace_back(++last_, std::move(function));
    empty_ = false;
    return last_;
  }
  void remove(uint64_t number) {
    const std::lock_guard lock(mutex_);
    std::erase_if(hooks_, [number](const auto& hook) { return hook.first == number; });
    empty_ = hooks_.empty();
  }
  bool empty() const { return empty_; }
  // A copy, since a hook may add and remove hooks.
  std::vector<Function> functions() const {
    const std::lock_guard lock(mutex_);
    std::vector<Function> all;
    for (const auto& hook : hooks_) all.push_back(hook.second);
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> empty_{true};
  uint64_t last_ = 0;
  std::vector<std::pair<uint64_t, Function>> hooks_;
};

// Holds a tensor's gradient after backward: for leaves, and for other tensors after retain_grad().
struct GradientSlot {
  std::mutex mutex;
  Tensor gradient;                   // guarded by mutex
  std::shared_ptr<void> remembered;  // guarded by mutex; set by SpreadValue::accumulated
  HookList<std::function<void()>> after_accumulation;
};

// A function of the user that gets the gradient of one result and may replace it.
struct Hook {
  uint32_t index = 0;
  std::function<Tensor(const Tensor&)> function;
};

// The fields that few nodes need: hooks, retained gradients of results, and where the op of forward was called.
struct NodeExtras {
  std::mutex mutex;
  const std::shared_ptr<HookList<Hook>> hooks = std::make_shared<HookList<Hook>>();
  std::vector<std::pair<uint32_t, std::shared_ptr<GradientSlot>>> kept;  // guarded by mutex
  std::string called_at;                                                 // guarded by mutex; empty: not noted
};

// Threads: a node is immutable after forward, except for its hooks and its saved tensors, which the last backward
// drops. Backward runs that share a node must keep the graph.
class Node {
 public:
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // The op of forward, for errors.
  virtual std::string_view name() const = 0;
  // The number of results of forward that have a gradient here.
  virtual size_t result_count() const = 0;
  // One per input of forward.
  virtual std::span<const Edge> edges() const = 0;
  // Computes the gradients of the inputs from the gradients of the results. A gradient of a result may be undefined.
  // `wanted` has wanted_bit(i) for each input whose gradient is needed; the other gradients stay undefined. Throws
  // tenon::Error.
  virtual void run(std::span<const Tensor> of_results, uint64_t wanted, std::span<Tensor> of_inputs) = 0;
  // Drops the tensors that forward saved. A second run() is then an error.
  virtual void drop_saved() {}
  // True if the node accumulates the gradient of a leaf and passes none on.
  virtual bool accumulates() const { return false; }

  // Greater than the numbers of all nodes behind its edges. Nodes of one thread are numbered in the order in which they
  // are made.
  uint64_t number() const { return number_; }
  // The hooks and retained gradients; null: there are none.
  NodeExtras* extras() const { return extras_.load(std::memory_order_acquire); }
  // Like extras(); creates them if there are none.
  NodeExtras& need_extras();

 protected:
  Node() = default;
  virtual ~Node();
  // Called when the edges are set.
  void number_after_edges();

 private:
  friend class NodeRef;
  // Destroys this object and frees its memory.
  virtual void destroy() = 0;

  std::atomic<int32_t> count_{1};
  uint64_t number_ = 0;
  std::atomic<NodeExtras*> extras_{nullptr};
  Node* next_released_ = nullptr;
};

inline NodeRef::NodeRef(const NodeRef& other) : node_(other.node_) {
  if (node_ != nullptr) node_->count_.fetch_add(1, std::memory_order_relaxed);
}

inline NodeRef NodeRef::share(Node* node) {
  node->count_.fetch_add(1, std::memory_order_relaxed);
  return NodeRef(node);
}

constexpr size_t kMostInputs = 64;  // the most inputs of a node that has a bit for each input

// The bit of an input in `wanted`. All inputs from number 63 on share the last bit.
constexpr uint64_t wanted_bit(size_t input) { return uint64_t{1} << (input < 63 ? input : 63); }

}  // namespace tenon::autograd
