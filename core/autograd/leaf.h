// LeafNode: accumulates the gradient of a leaf. SlotWatch: observes reads and writes of such gradients. Internal.
#pragma once

#include <cstdint>
#include <memory>

#include "core/autograd/node.h"
#include "core/device/call_context.h"

namespace tenon::autograd {

enum class SlotUse : uint8_t { read, replace };

// Observes which gradients of leaves a function reads and replaces while a program is recorded from that function.
class SlotWatch {
 public:
  virtual ~SlotWatch() = default;
  // Called before the use.
  virtual void touch(const std::shared_ptr<GradientSlot>& slot, SlotUse use) = 0;
};

inline void note_use(const std::shared_ptr<GradientSlot>& slot, SlotUse use) {
  if (call_context.slot_watch != nullptr) [[unlikely]]
    call_context.slot_watch->touch(slot, use);
}

class LeafNode final : public Node {
 public:
  explicit LeafNode(std::shared_ptr<GradientSlot> slot) : slot_(std::move(slot)) {}

  std::string_view name() const override { return "no op"; }
  size_t result_count() const override { return 1; }
  std::span<const Edge> edges() const override { return {}; }
  bool accumulates() const override { return true; }
  // Adds the gradient to the leaf's gradient, then runs the hooks after accumulation.
  void run(std::span<const Tensor> of_results, uint64_t wanted, std::span<Tensor> of_inputs) override;

 private:
  void destroy() override { delete this; }

  std::shared_ptr<GradientSlot> slot_;
};

}  // namespace tenon::autograd
