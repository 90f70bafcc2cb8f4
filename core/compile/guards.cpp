#include "core/compile/guards.h"

#include <algorithm>

#include "core/autograd/engine.h"
#include "core/autograd/history.h"
#include "core/autograd/interpreter.h"
#include "core/compile/captures.h"
#include "core/compile/slots.h"
#include "core/device/deterministic.h"
#include "core/global/value.h"
#include "core/ops/op_call.h"
#include "core/tensor/recording.h"
#include "core/tensor/stream.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon::compilation {
namespace {

void add_place(DeviceState* device, std::vector<uint64_t>* words) {
  words->push_back(reinterpret_cast<uintptr_t>(device));
  words->push_back(Stream::current(Device(device)).index());
}

// Adds the index of the first argument with the same storage, and both positions in it if they differ.
void add_sharing(const TensorList& inputs, size_t i, std::vector<uint64_t>* words) {
  const Tensor& own = global::held(inputs[i]);
  const auto shares = [&](const Tensor& given) {
    const Tensor& other = global::held(given);
    return own.defined() && other.defined() && other.impl()->storage == own.impl()->storage;
  };
  size_t first = 0;
  while (first < i && !shares(inputs[first])) ++first;
  words->push_back(first);
  if (first == i) return;
  for (size_t number : {first, i}) {
    for (int64_t word : geometry_of(global::held(inputs[number]))) words->push_back(static_cast<uint64_t>(word));
  }
}

// Adds the facts of a whole global tensor, whose sizes are numbers in a recording. Placements live until the process
// ends, so the address of their ranks identifies one.
void add_global(const Tensor& tensor, const global::GlobalValue& value, std::vector<uint64_t>* words) {
  words->push_back(reinterpret_cast<uintptr_t>(value.layout.placement.ranks().data()));
  for (const global::Sbp sbp : value.layout.sbp) {
    words->push_back(static_cast<uint64_t>(sbp.is_partial() ? 1 : sbp.is_split() ? 2 + sbp.axis() : 0));
  }
  for (const int64_t dim : tensor.dims()) words->push_back(static_cast<uint64_t>(dim));
  for (const int64_t stride : tensor.strides()) words->push_back(static_cast<uint64_t>(stride));
}

}  // namespace

bool gradients_on() {
  return autograd::remembers() || &current_interpreter() == process_interpreter.load(std::memory_order_acquire);
}

bool has_hooks(const Tensor& tensor) {
  const autograd::History* history = autograd::history_of(tensor);
  if (history == nullptr || !history->leaf || !history->edge.node) return false;
  if (history->slot != nullptr && !history->slot->after_accumulation.empty()) return true;
  const autograd::NodeExtras* extras = history->edge.node.get()->extras();
  return extras != nullptr && !extras->hooks->empty();
}

CallShape shape_of(const std::string& name, const TensorList& inputs) {
  CallShape shape;
  shape.fixed.reserve(5 + 6 * inputs.size());
  shape.sizes.reserve(4 * inputs.size());
  shape.fixed.assign({inputs.size(), static_cast<uint64_t>(demanded_precision),
                      uint64_t{gradients_on()} | uint64_t{are_deterministic_algorithms_enabled()} << 1 |
                          uint64_t{autograd::is_inferring()} << 2});
  add_place(Device::current().state(), &shape.fixed);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) {
      throw Error(Subject{name}, Code::invalid_argument, fmt::format("argument {} is an undefined tensor.", i));
    }
    const global::GlobalValue* value = global::value_of(inputs[i]);
    if (inputs[i].impl()->storage == nullptr && value == nullptr) {
      throw Error(
          Subject{name}, Code::invalid_argument,
          fmt::format("argument {} of shape {} has no data: it is {}.", i, inputs[i].dims(), origin_of(inputs[i])));
    }
    const Dims& dims = inputs[i].dims();
    shape.fixed.push_back(static_cast<uint64_t>(inputs[i].dtype()) | uint64_t{value != nullptr} << 32);
    shape.fixed.push_back(static_cast<uint64_t>(dims.rank()));
    const bool wanted = inputs[i].requires_grad();
    shape.fixed.push_back(wanted ? 1 + uint64_t{inputs[i].is_leaf()} + 2 * uint64_t{has_hooks(inputs[i])} : 0);
    add_place(inputs[i].impl()->device, &shape.fixed);
    add_sharing(inputs, i, &shape.fixed);
    if (value != nullptr) {
      add_global(inputs[i], *value, &shape.fixed);
    } else {
      shape.sizes.insert(shape.sizes.end(), dims.begin(), dims.end());
    }
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
  const auto with_it = [&] {
    const Tensor& given = global::held(inputs[input]);
    return given.defined() && given.impl()->storage == tensor.impl()->storage;
  };
  switch (kind) {
    case GuardKind::apart: return !with_it();
    case GuardKind::together: return with_it() && geometry_of(global::held(inputs[input])) == geometry;
    case GuardKind::wants_gradient: return tensor.requires_grad() == wanted && has_hooks(tensor) == hooked;
    case GuardKind::gradient: break;
  }
  const auto here = slot.of(inputs);
  const Tensor given = here == nullptr ? Tensor() : gradient_in(*here);
  if (given.defined() != whole.defined()) return false;
  if (!given.defined()) return true;
  const global::GlobalValue *value = global::value_of(given), *before = global::value_of(whole);
  if ((value == nullptr) != (before == nullptr)) return false;
  if (value != nullptr && !(value->layout == before->layout && given.dims() == whole.dims())) return false;
  const Tensor& now = global::held(given);
  return !now.defined() || (geometry_of(now) == geometry && now.device() == tensor.device() &&
                            now.impl()->storage.bytes() == tensor.impl()->storage.bytes());
}

}  // namespace tenon::compilation
