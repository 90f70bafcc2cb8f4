// LeafNode: where the gradients of a leaf end. Internal.
#pragma once

#include <memory>

#include "core/autograd/node.h"

namespace tenon::autograd {

class LeafNode final : public Node {
 public:
  explicit LeafNode(std::shared_ptr<GradientSlot> slot) : slot_(std::move(slot)) {}

  std::string_view name() const override { return "no op"; }
  size_t result_count() const override { return 1; }
  std::span<const Edge> edges() const override { return {}; }
  bool accumulates() const override { return true; }
  // Adds the gradient to that of the leaf, then runs the hooks after accumulation.
  void run(std::span<const Tensor> of_results, uint64_t wanted, std::span<Tensor> of_inputs) override;

 private:
  void destroy() override { delete this; }

  std::shared_ptr<GradientSlot> slot_;
};

}  // namespace tenon::autograd
