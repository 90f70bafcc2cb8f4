#include "core/autograd/leaf.h"

#include "core/autograd/engine.h"
#include "core/ops/ops.h"
#include "core/tensor/recording.h"
#include "core/vm/storage.h"

namespace tenon::autograd {
namespace {

// True if only the running backward can see the elements of `gradient`.
bool is_ours(const Tensor& gradient) {
  const TensorImpl& impl = *gradient.impl();
  return impl.count.load(std::memory_order_acquire) == 1 && impl.contiguous && impl.storage != nullptr &&
         impl.storage.tensor_count() == 1;
}

void accumulate(Tensor* sum, const Tensor& gradient) {
  if (creates_graph()) {
    *sum = sum->defined() ? tenon::add(*sum, gradient) : gradient;
  } else if (!sum->defined()) {
    *sum = is_ours(gradient) ? gradient : tenon::clone(gradient);
  } else if (sum->impl()->gradient != nullptr) {
    *sum = tenon::add(*sum, gradient);
  } else {
    tenon::add_(*sum, gradient);
  }
}

}  // namespace

void LeafNode::run(std::span<const Tensor> of_results, uint64_t, std::span<Tensor>) {
  if (!of_results[0].defined()) return;
  note_use(slot_, SlotUse::read);
  std::unique_lock lock(slot_->mutex);
  accumulate(&slot_->gradient, of_results[0]);
  if (SpreadValue* value = spread_value(slot_->gradient)) value->accumulated(slot_->gradient, &slot_->remembered);
  lock.unlock();
  if (slot_->after_accumulation.empty()) return;
  for (const std::function<void()>& hook : slot_->after_accumulation.functions()) {
    if (of_results[0].impl()->storage == nullptr) {
      throw Error(Subject{"backward"}, Code::invalid_argument,
                  "a leaf has a hook after accumulation, which a recording cannot hold.",
                  "Remove the hook, or run this step without recording it.");
    }
    hook();
  }
}

}  // namespace tenon::autograd
