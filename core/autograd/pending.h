// Pending: the nodes that a backward still has to run, with the gradients of their results so far. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/autograd/node.h"

namespace tenon::autograd {

// A node that is ready to run.
struct Turn {
  NodeRef node;
  Tensor only;               // the gradient of the result, if the node has one
  std::vector<Tensor> many;  // the gradients of the results, if it has several

  std::span<Tensor> gradients() { return many.empty() ? std::span<Tensor>(&only, 1) : std::span<Tensor>(many); }
};

class Pending {
 public:
  bool empty() const { return heap_.empty(); }
  // Adds `gradient` to the gradients that arrived at `edge`. The first one to arrive is the left operand of each sum.
  void add(const Edge& edge, Tensor gradient);
  // Removes and returns the node with the greatest number; of equal numbers, the one added first. All nodes that pass
  // gradients to it have greater numbers, so its gradients are complete.
  Turn take();
  // Says that all gradients of `node` have arrived: it is taken next, if there are any.
  void hurry(const Node* node);

 private:
  struct Waiting {
    uint64_t number;
    uint64_t arrival;
    uint32_t turn;
    // Orders a heap whose first element runs next.
    friend bool operator<(const Waiting& a, const Waiting& b) {
      return a.number != b.number ? a.number < b.number : a.arrival > b.arrival;
    }
  };

  Turn& turn_of(const NodeRef& node);
  size_t home_of(const Node* node) const;
  void grow();
  void place(uint32_t turn);
  void erase(const Node* node);

  std::vector<Turn> turns_;
  std::vector<uint32_t> free_;
  std::vector<Waiting> heap_;
  std::vector<uint32_t> table_ = std::vector<uint32_t>(16);  // open addressing: 1 + the index of a node's turn, or 0
  uint64_t arrivals_ = 0;
};

}  // namespace tenon::autograd
