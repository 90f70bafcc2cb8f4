#include "core/lazy/guards.h"

#include <algorithm>

#include "core/autograd/history.h"
#include "core/autograd/interpreter.h"
#include "core/lazy/captures.h"
#include "core/lazy/slots.h"
#include "core/ops/op_call.h"
#include "core/tensor/recording.h"
#include "core/tensor/stream.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon::lazy {
namespace {

void add_place(DeviceState* device, std::vector<uint64_t>* words) {
  words->push_back(reinterpret_cast<uintptr_t>(device));
  words->push_back(Stream::current(Device(device)).index());
}

// The number of the first argument over the same storage, and where both lie in it if that is another one.
void add_sharing(const TensorList& inputs, size_t i, std::vector<uint64_t>* words) {
  size_t first = 0;
  while (!(inputs[first].impl()->storage == inputs[i].impl()->storage)) ++first;
  words->push_back(first);
  if (first == i) return;
  for (size_t number : {first, i}) {
    for (int64_t word : geometry_of(inputs[number])) words->push_back(static_cast<uint64_t>(word));
  }
}

}  // namespace

bool gradients_on() {
  return autograd::remembers() || &current_interpreter() == process_interpreter.load(std::memory_order_acquire);
}

CallShape shape_of(const std::string& name, const TensorList& inputs) {
  CallShape shape;
  shape.fixed.reserve(5 + 6 * inputs.size());
  shape.sizes.reserve(4 * inputs.size());
  shape.fixed.assign({inputs.size(), static_cast<uint64_t>(demanded_precision), gradients_on()});
  add_place(Device::current().state(), &shape.fixed);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) {
      throw Error(Code::invalid_argument, fmt::format("{}: argument {} is an undefined tensor.", name, i));
    }
    if (inputs[i].impl()->storage == nullptr) {
      throw Error(Code::invalid_argument, fmt::format("{}: argument {} of shape {} has no data: it is {}.", name, i,
                                                      inputs[i].dims(), origin_of(inputs[i])));
    }
    const Dims& dims = inputs[i].dims();
    shape.fixed.push_back(static_cast<uint64_t>(inputs[i].dtype()));
    shape.fixed.push_back(static_cast<uint64_t>(dims.rank()));
    shape.fixed.push_back(inputs[i].requires_grad() ? 1 + uint64_t{inputs[i].is_leaf()} : 0);
    add_place(inputs[i].impl()->device, &shape.fixed);
    add_sharing(inputs, i, &shape.fixed);
    shape.sizes.insert(shape.sizes.end(), dims.begin(), dims.end());
  }
  return shape;
}

std::string text_of(const TensorList& inputs) {
  std::string text;
  for (const Tensor& input : inputs) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", dtype_name(input.dtype()), input.dims());
  }
  return text;
}

std::shared_ptr<autograd::GradientSlot> SlotRef::of(const TensorList& inputs) const {
  if (slot != nullptr) return slot;
  const autograd::History* history = autograd::history_of(inputs[input]);
  return history == nullptr ? nullptr : history->slot;
}

bool Guard::holds(const TensorList& inputs) const {
  switch (kind) {
    case GuardKind::apart: return !(inputs[input].impl()->storage == tensor.impl()->storage);
    case GuardKind::together:
      return inputs[input].impl()->storage == tensor.impl()->storage && geometry_of(inputs[input]) == geometry;
    case GuardKind::wants_gradient: return tensor.requires_grad() == wanted;
    case GuardKind::gradient: break;
  }
  const auto here = slot.of(inputs);
  const Tensor now = here == nullptr ? Tensor() : gradient_in(*here);
  if (now.defined() != tensor.defined()) return false;
  return !now.defined() || (geometry_of(now) == geometry && now.device() == tensor.device() &&
                            now.impl()->storage.bytes() == tensor.impl()->storage.bytes());
}

}  // namespace tenon::lazy
