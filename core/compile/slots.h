// Slots: the gradients that leaves keep (Tensor::grad), as state of a recorded function. Internal.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/autograd/leaf.h"

namespace tenon::lazy {

struct SlotState {
  std::shared_ptr<autograd::GradientSlot> slot;
  bool read = false;  // what the function does depends on what the slot held before
  Tensor before;      // what it held
  Tensor after;       // what the function left there
};

// Watches the calling thread for its life, and gives every slot back what it held before.
class Slots final : public autograd::SlotWatch {
 public:
  Slots() : previous_(std::exchange(autograd::slot_watch, this)) {}
  ~Slots() override;
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  void touch(const std::shared_ptr<autograd::GradientSlot>& slot, autograd::SlotUse use) override;
  // The slots that somebody beside the function knows, as the function left them. Watching ends.
  std::vector<SlotState> finish();
  // Instead: what the function left stays, each gradient as `real` gives it.
  void settle(const std::function<Tensor(const Tensor&)>& real);

 private:
  void stop();

  std::vector<SlotState> states_;
  autograd::SlotWatch* previous_;
  bool watching_ = true;
};

// What `slot` holds now.
Tensor gradient_in(autograd::GradientSlot& slot);
void set_gradient(autograd::GradientSlot& slot, const Tensor& gradient);

}  // namespace tenon::lazy
