// Slots: the gradients that leaves keep (Tensor::grad), as state of a recorded function. Internal.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/autograd/leaf.h"

namespace tenon::compilation {

struct SlotState {
  std::shared_ptr<autograd::GradientSlot> slot;
  bool read = false;  // the function depends on the earlier content of the slot
  Tensor before;      // content before the call
  Tensor after;       // content after the call
};

// Watches the gradient slots that the calling thread uses. The destructor restores the earlier content of every slot.
class Slots final : public autograd::SlotWatch {
 public:
  Slots() : previous_(std::exchange(call_context.slot_watch, this)) {}
  ~Slots() override;
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  void touch(const std::shared_ptr<autograd::GradientSlot>& slot, autograd::SlotUse use) override;
  // Ends watching and returns the slots that exist outside of the function, with the content that the function left.
  std::vector<SlotState> finish();
  // Ends watching and keeps the content that the function left, with each gradient replaced by `real(gradient)`.
  void settle(const std::function<Tensor(const Tensor&)>& real);

 private:
  void stop();

  std::vector<SlotState> states_;
  autograd::SlotWatch* previous_;
  bool watching_ = true;
};

// The present content of `slot`.
Tensor gradient_in(autograd::GradientSlot& slot);
void set_gradient(autograd::GradientSlot& slot, const Tensor& gradient);

}  // namespace tenon::compilation
