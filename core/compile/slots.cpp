#include "core/compile/slots.h"

#include <algorithm>

namespace tenon::compilation {

Tensor gradient_in(autograd::GradientSlot& slot) {
  const std::lock_guard lock(slot.mutex);
  return slot.gradient;
}

void set_gradient(autograd::GradientSlot& slot, const Tensor& gradient) {
  const std::lock_guard lock(slot.mutex);
  slot.gradient = gradient;
}

Slots::~Slots() {
  if (watching_) stop();
}

void Slots::stop() {
  watching_ = false;
  call_context.slot_watch = previous_;
  for (SlotState& state : states_) {
    state.after = gradient_in(*state.slot);
    set_gradient(*state.slot, state.before);
  }
}

void Slots::touch(const std::shared_ptr<autograd::GradientSlot>& slot, autograd::SlotUse use) {
  const auto same = [&](const SlotState& state) { return state.slot == slot; };
  if (std::any_of(states_.begin(), states_.end(), same)) return;
  states_.push_back({slot, use == autograd::SlotUse::read, gradient_in(*slot), {}});
}

void Slots::settle(const std::function<Tensor(const Tensor&)>& real) {
  watching_ = false;
  call_context.slot_watch = previous_;
  for (const SlotState& state : states_) {
    const Tensor gradient = gradient_in(*state.slot);
    if (gradient.defined()) set_gradient(*state.slot, real(gradient));
  }
}

std::vector<SlotState> Slots::finish() {
  stop();
  std::erase_if(states_, [](const SlotState& state) { return state.slot.use_count() == 1; });
  return std::move(states_);
}

}  // namespace tenon::compilation
