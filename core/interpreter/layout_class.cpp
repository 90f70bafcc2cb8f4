#include "core/interpreter/layout_class.h"

#include <algorithm>

#include "core/device/device_state.h"
#include "core/device/process.h"
#include "core/interpreter/elementwise.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/operands.h"
#include "core/interpreter/order.h"
#include "core/interpreter/tables.h"
#include "core/tensor/factory.h"
#include "core/vm/inline.h"

namespace tenon {
namespace {

// The key of a folded call: two words with everything except the lengths of axes. `scalars_at` has bit i for operand i
// (0 is the output), `layout` has two bits per operand and axis: stride 0, 1, or more.
struct ElementwiseKey {
  uint64_t words[2];

  ElementwiseKey(const OpCall& call, const DeviceState* device, DType compute, uint64_t rank, uint64_t scalars_at,
                 uint64_t layout)
      : words{uint64_t{call.op->id} | uint64_t{device->id} << 16 | static_cast<uint64_t>(compute) << 32 | rank << 40 |
                  scalars_at << 48 | static_cast<uint64_t>(call.precision) << 56 | uint64_t{1} << 63,
              layout} {}
};

ElementwiseKey key_of(const OpCall& call, const DeviceState* device, const FoldedCall& folded) {
  uint64_t scalars_at = 0;
  uint64_t layout = 0;
  for (uint32_t i = 0; i < folded.operand_count; ++i) {
    const bool scalar = i > 0 && folded.tensors[i] == nullptr;
    scalars_at |= uint64_t{scalar} << i;
    for (int32_t axis = 0; axis < folded.rank; ++axis) {
      const uint64_t stride = scalar ? 0 : static_cast<uint64_t>(folded.strides[i][axis]);
      layout = layout << 2 | (stride > 1 ? 2 : stride);
    }
  }
  return {call, device, folded.compute, static_cast<uint64_t>(folded.rank), scalars_at, layout};
}

// Handles a launch that failed. Throws the failure; or returns false if these lengths are too large for the primitive:
// nothing happened. Drops an output that was made for the launch.
[[gnu::cold]] bool not_launched(const OpCall& call, const vm::Launched& launched, const DeviceState* device,
                                ElementwiseChoice& choice, bool given) {
  if (!given) call.outputs[0] = Tensor();
  if (launched.code == EP_STATUS_UNSUPPORTED) {
    static_cast<void>(loader::take_error(launched.code, launched.error, {}));
    return false;
  }
  Counters::add(choice.counters.launches, 1);
  throw Error(vm::launch_failure(launched, {&call.op->named, note_call, &call, kElementwiseInputs}, device));
}

// True if `output`, given by the caller, can be written directly: it is dense, has the result's type, and is either
// exactly inputs[0] or shares no memory. The inputs have the shape and device of `shaped`.
bool writable_flat(const OpCall& call, const Tensor& output, DType dtype, const TensorImpl& shaped) {
  const TensorImpl& out = *output.impl();
  if (!out.contiguous || out.dtype != dtype || !(out.dims == shaped.dims) || out.storage == nullptr) return false;
  if (out.device != shaped.device) return false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    const TensorImpl& in = *call.inputs[i]->impl();
    if (in.storage == out.storage && !(i == 0 && in.offset == out.offset && in.dtype == out.dtype)) return false;
  }
  return !out.storage.busy_for_read();
}

// Runs `call` if all its tensors are contiguous, of one shape and on one synchronous device, its class has a primitive,
// and process::attention is 0. False: nothing happened. Most ops take this path, so the code is unrolled: it does not
// fold and fills no intermediate structure.
template <uint32_t kArity>
[[gnu::always_inline]] inline bool apply_flat(const OpCall& call) {
  static constexpr int64_t kUnit[1] = {1};
  if (process::attention.load(std::memory_order_relaxed) != 0) return false;
  const TensorImpl* shaped = nullptr;
  DType compute = DType::none;
  uint64_t scalars_at = 0;
  uint64_t layout = 1;
  ep_buffer buffers[kArity + 1];
  ep_shape shapes[kArity + 1];
  int64_t elements = 0;
  for (uint32_t i = 0; i < kArity; ++i) {
    const Tensor* input = i < call.inputs.size() ? call.inputs[i] : nullptr;
    shapes[i + 1] = {&elements, kUnit, 1, 0};
    layout <<= 2;
    if (input == nullptr) {
      scalars_at |= uint64_t{2} << i;
      shapes[i + 1].rank = 0;
      buffers[i + 1] = {};
      continue;
    }
    layout |= 1;
    const TensorImpl& impl = *input->impl();
    if (!impl.contiguous || impl.storage == nullptr || impl.storage.busy_for_read()) return false;
    if (shaped == nullptr) {
      shaped = &impl;
    } else if (shaped->device != impl.device || !(shaped->dims == impl.dims)) {
      return false;
    }
    const bool condition = i == 0 && call.op->cond_first;
    if (condition ? impl.dtype != DType::boolean : compute != DType::none && compute != impl.dtype) return false;
    if (!condition) compute = impl.dtype;
    buffers[i + 1] = address_at_hand(impl);
  }
  if (shaped == nullptr || shaped->elements == 0 || compute == DType::none || !shaped->device->synchronous)
    return false;
  DeviceState* device = shaped->device;
  elements = shaped->elements;
  const ElementwiseKey key(call, device, compute, 1, scalars_at, layout);
  ElementwiseChoice& choice = tables().elementwise(key.words);
  if (choice.key[0] != key.words[0] || choice.key[1] != key.words[1] || choice.primitive == nullptr) return false;

  const DType result = call.op->bool_result ? DType::boolean : compute;
  Tensor& output = call.outputs[0];
  const bool given = output.defined();
  if (given && !writable_flat(call, output, result, *shaped)) return false;
  if (!given) output = make_tensor_like(*shaped, result);
  buffers[0] = address_at_hand(*output.impl());
  shapes[0] = {&elements, kUnit, 1, 0};
  ep_scalar scalars[3];
  const auto scalar_count = static_cast<uint32_t>(std::min<size_t>(call.scalars.size(), 3));
  for (uint32_t slot = 0; slot < scalar_count; ++slot) scalars[slot] = call.scalars[slot].to_abi(compute);

  const ep_launch launch{buffers, shapes, scalars, kArity + 1, scalar_count, {}, {}, 0};
  vm::Launched launched;
  vm::launch_now(*choice.primitive, device, launch, &launched);
  if (!launched.ok()) [[unlikely]]
    return not_launched(call, launched, device, choice, given);
  Counters::add(choice.counters.launches, 1);
  if (given) output.impl()->storage.note_write(call.op->name);
  return true;
}

// The inputs of a call for apply_folded: on one synchronous device, without pending work, of dtypes that fit the op.
template <uint32_t kArity>
struct QuietInputs {
  DeviceState* device = nullptr;
  DType compute = DType::none;
  Dims dims;  // the dims of the result
  bool row_major = true;

  // False: the general path must handle or refuse the inputs.
  bool take(const OpCall& call) {
    for (uint32_t i = 0; i < kArity; ++i) {
      const Tensor* input = i < call.inputs.size() ? call.inputs[i] : nullptr;
      if (input == nullptr) continue;
      const TensorImpl& impl = *input->impl();
      if (impl.storage == nullptr || impl.elements == 0 || impl.storage.busy_for_read()) return false;
      if (device == nullptr) {
        if (!impl.device->synchronous) return false;
        device = impl.device;
        dims = impl.dims;
      } else if (device != impl.device || !widen(impl.dims)) {
        return false;
      }
      row_major = row_major && impl.contiguous;
      const bool condition = i == 0 && call.op->cond_first;
      if (condition ? impl.dtype != DType::boolean : compute != DType::none && compute != impl.dtype) return false;
      if (!condition) compute = impl.dtype;
    }
    return compute != DType::none;
  }

 private:
  // Broadcasts `dims` with `other`. False: they do not broadcast.
  bool widen(const Dims& other) {
    if (dims == other) return true;
    while (dims.rank() < other.rank()) dims.insert(0, 1);
    for (int32_t axis = dims.rank() - 1, at = other.rank() - 1; at >= 0; --axis, --at) {
      if (dims[axis] == other[at] || other[at] == 1) continue;
      if (dims[axis] != 1) return false;
      dims[axis] = other[at];
    }
    return true;
  }
};

// True if `output`, given by the caller, can be written directly: it has the result's type, and is either exactly
// inputs[0] or shares no memory.
bool writable(const OpCall& call, const Tensor& output, DType dtype, const Dims& dims, DeviceState* device) {
  const TensorImpl& out = *output.impl();
  if (out.dtype != dtype || out.device != device || !(out.dims == dims) || out.storage == nullptr) return false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    const TensorImpl& in = *call.inputs[i]->impl();
    if (in.storage == out.storage && !(i == 0 && same_elements(in, out))) return false;
  }
  return !out.storage.busy_for_read();
}

// Runs `call` if its folded class has a primitive. Handles broadcast, strided and transposed operands.
template <uint32_t kArity>
[[gnu::noinline]] bool apply_folded(const OpCall& call) {
  if (process::attention.load(std::memory_order_relaxed) != 0) return false;
  QuietInputs<kArity> inputs;
  if (!inputs.take(call)) return false;
  const DType result = call.op->bool_result ? DType::boolean : inputs.compute;
  Tensor& output = call.outputs[0];
  const bool given = output.defined();
  if (given && !writable(call, output, result, inputs.dims, inputs.device)) return false;
  const Dims strides = given              ? output.strides()
                       : inputs.row_major ? contiguous_strides(inputs.dims)
                                          : strides_in_order(call.inputs, inputs.dims);
  FoldedCall folded;
  fold_call(call, inputs.dims, strides, &folded);
  const ElementwiseKey key = key_of(call, inputs.device, folded);
  ElementwiseChoice& choice = tables().elementwise(key.words);
  if (choice.key[0] != key.words[0] || choice.key[1] != key.words[1] || choice.primitive == nullptr) return false;

  if (!given) output = value_or_throw(make_tensor(inputs.device, result, inputs.dims, strides));
  ep_buffer buffers[kArity + 1];
  ep_shape shapes[kArity + 1];
  buffers[0] = address_at_hand(*output.impl());
  shapes[0] = {folded.dims, folded.strides[0], folded.rank, 0};
  for (uint32_t i = 1; i <= kArity; ++i) {
    const bool scalar = folded.tensors[i] == nullptr;
    buffers[i] = scalar ? ep_buffer{} : address_at_hand(*folded.tensors[i]->impl());
    shapes[i] = {folded.dims, folded.strides[i], scalar ? 0 : folded.rank, 0};
  }
  ep_scalar scalars[3];
  const auto scalar_count = static_cast<uint32_t>(std::min<size_t>(call.scalars.size(), 3));
  for (uint32_t slot = 0; slot < scalar_count; ++slot) scalars[slot] = call.scalars[slot].to_abi(inputs.compute);
  const ep_launch launch{buffers, shapes, scalars, kArity + 1, scalar_count, {}, {}, 0};
  vm::Launched launched;
  vm::launch_now(*choice.primitive, inputs.device, launch, &launched);
  if (!launched.ok()) [[unlikely]]
    return not_launched(call, launched, inputs.device, choice, given);
  Counters::add(choice.counters.launches, 1);
  if (given) output.impl()->storage.note_write(call.op->name);
  return true;
}

// True if a primitive made for the strides of `folded` serves all strides of its class.
bool serves_class(const Prepared& prepared, const FoldedCall& folded) {
  if (prepared.any_strides) return true;
  for (uint32_t i = 0; i < folded.operand_count; ++i) {
    if (i > 0 && folded.tensors[i] == nullptr) continue;
    for (int32_t axis = 0; axis < folded.rank; ++axis) {
      if (folded.strides[i][axis] > 1) return false;
    }
  }
  return true;
}

}  // namespace

template <uint32_t kArity>
bool apply_arity(const OpCall& call) {
  return apply_flat<kArity>(call) || apply_folded<kArity>(call);
}
template bool apply_arity<1>(const OpCall& call);
template bool apply_arity<2>(const OpCall& call);
template bool apply_arity<3>(const OpCall& call);

void learn_class(const OpCall& call, const Prepared& prepared) {
  if (prepared.primitive == nullptr || !prepared.primitive->dynamic) return;
  if (prepared.device->layouts) return;  // an input may be opaque
  if (prepared.limited || prepared.nested() || !prepared.reusable || prepared.workspace_bytes != 0) return;
  if (prepared.primitive->dynamic_workspace || prepared.primitive->scratch_bytes != 0) return;
  for (const PreparedOperand& operand : prepared.operands) {
    if (operand.alignment > 1 || dtype_size(operand.dtype) == 0) return;
  }
  const TensorMeta& result = prepared.outputs[0];
  FoldedCall folded;
  fold_call(call, result.dims, result.strides, &folded);
  if (!serves_class(prepared, folded)) return;
  const ElementwiseKey key = key_of(call, prepared.device, folded);
  prepared.primitive->retain();
  tables().set(tables().elementwise(key.words), key.words, prepared.primitive, call.op);
}

}  // namespace tenon
