#include "core/interpreter/launch.h"

#include "core/device/process.h"
#include "core/interpreter/compiled_call.h"
#include "core/interpreter/eager.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/ladder.h"
#include "core/interpreter/opaque_operands.h"
#include "core/interpreter/order.h"
#include "core/tensor/factory.h"
#include "core/vm/inline.h"
#include "core/vm/vm.h"

namespace tenon {
namespace {

// The operands of one launch.
template <size_t kRoom>
struct LaunchOperands {
  vm::Operand operands[kRoom];
  ep_shape shapes[kRoom];
  ep_scalar scalars[EP_MAX_SCALARS];
  uint32_t count = 0;
  uint32_t scalar_count = 0;
};

bool reads(const OpCall& call, SharedStorage storage) {
  for (const Tensor* input : call.inputs) {
    if (input != nullptr && input->impl()->storage == storage) return true;
  }
  return false;
}

ep_scalar scalar_of(const OpCall& call, const Prepared& prepared, uint32_t slot) {
  const DType dtype = prepared.scalar_dtypes[slot];
  return dtype == DType::none ? ep_scalar{} : call.scalars[slot].to_abi(dtype);
}

// The tensors are plain, or stand for opaque values; place() has prepared them.
template <size_t kRoom>
void collect(const OpCall& call, const Prepared& prepared, LaunchOperands<kRoom>* launch) {
  launch->count = static_cast<uint32_t>(prepared.operands.size());
  for (uint32_t i = 0; i < launch->count; ++i) {
    const PreparedOperand& operand = prepared.operands[i];
    launch->shapes[i] = {operand.dims.data(), operand.strides.data(), operand.dims.rank(), 0};
    if (operand.input < 0 && operand.output < 0) {
      launch->operands[i] = {};
      continue;
    }
    const bool write = operand.output >= 0;
    const TensorImpl& impl = write ? *call.outputs[static_cast<size_t>(operand.output)].impl()
                                   : *call.inputs[static_cast<size_t>(operand.input)]->impl();
    const auto offset = static_cast<uint64_t>(dtype_bytes(impl.dtype, impl.offset));
    const bool whole = write && fills_storage(impl) && !reads(call, impl.storage);
    launch->operands[i] = {impl.storage.at_hand(), offset, write, whole};
  }
  launch->scalar_count = prepared.scalar_count;
  for (uint32_t slot = 0; slot < prepared.scalar_count; ++slot) {
    launch->scalars[slot] = scalar_of(call, prepared, slot);
  }
}

template <size_t kRoom>
Status launch_native(const OpCall& call, const Prepared& prepared) {
  LaunchOperands<kRoom> operands;
  collect(call, prepared, &operands);
  vm::OpLaunch launch;
  launch.primitive = prepared.primitive;
  launch.operands = {operands.operands, operands.count};
  launch.shapes = prepared.primitive->dynamic ? operands.shapes : nullptr;
  launch.scalars = operands.scalars;
  launch.scalar_count = operands.scalar_count;
  launch.workspace_bytes = prepared.workspace_bytes;
  launch.op = &call.op->named;
  launch.note = note_call;
  launch.context = &call;
  launch.operand_inputs = prepared.operand_inputs;
  launch.stream = vm::current_stream(prepared.device);
  return vm::launch(launch, {});
}

template <size_t kRoom>
void make_dense(OwnedInputs<kRoom>* owned, const Prepared& prepared) {
  const OpCall& call = owned->call;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if ((prepared.dense_inputs >> i & 1) == 0 || static_cast<int>(i) == prepared.packed_input) continue;
    const Tensor& input = *owned->pointers[i];
    owned->replace(i, dense_on_device(input, dense_strides(call, input.dims(), prepared.written()[0])));
  }
}

// The device's requirements for an output.
struct OutputWish {
  int32_t alignment = 0;
  const PreparedOperand* layout = nullptr;  // not null: the operand that names the layout
};

// Copies inputs that are not aligned enough, converts inputs to the layouts that the primitive takes, and notes the
// requirements for the outputs.
template <size_t kRoom>
void place(OwnedInputs<kRoom>* owned, const Prepared& prepared, OutputWish* wishes) {
  for (const PreparedOperand& operand : prepared.operands) {
    if (operand.output >= 0) {
      OutputWish& wish = wishes[operand.output];
      wish.alignment = std::max(wish.alignment, operand.alignment);
      if (operand.token != 0) wish.layout = &operand;
      continue;
    }
    if (operand.input < 0) continue;
    const auto index = static_cast<size_t>(operand.input);
    if (operand.token != 0) {
      owned->stand_in(index, in_layout(*owned->pointers[index], operand, &owned->copied_bytes));
      continue;
    }
    if (prepared.device->layouts) owned->stand_in(index, in_plain(*owned->pointers[index], Use::read));
    if (misaligned(*owned->pointers[index], operand.alignment)) {
      owned->replace(index, realigned(*owned->pointers[index], operand.alignment));
    }
  }
}

// `output`, given by the caller, as a tensor that a launch of `call` can write.
Tensor writable(const OpCall& call, const Tensor& output) {
  const TensorImpl& impl = *output.impl();
  if (!impl.device->layouts) return output;
  return in_plain(output, fills_storage(impl) && !reads(call, impl.storage) ? Use::overwrite : Use::write);
}

// True if output `index`, given by the caller, shares a block with an earlier output, on a device that allows only one
// operand in a block that is written.
bool shares_block(const OpCall& call, size_t index) {
  const TensorImpl& one = *call.outputs[index].impl();
  if (!one.device->exclusive) return false;
  return std::any_of(call.outputs.begin(), call.outputs.begin() + static_cast<std::ptrdiff_t>(index),
                     [&](const Tensor& other) { return other.defined() && other.impl()->storage == one.storage; });
}

// True if a launch with these shapes is too large for a primitive with open dims, as a synchronous device may report.
bool is_beyond(const Status& launched, const Prepared& prepared) {
  return launched.code() == Code::unsupported && prepared.primitive->dynamic && prepared.device->synchronous;
}

// Launches `call` on the outputs `made`. False: the shapes are too large for the primitive, and nothing happened.
template <size_t kRoom>
bool launch_on(const OpCall& call, const Prepared& prepared, Tensor* made) {
  OpCall inner = call;
  inner.outputs = {made, call.outputs.size()};
  const Status launched = launch_native<kRoom>(inner, prepared);
  if (launched.ok()) [[likely]]
    return true;
  if (!is_beyond(launched, prepared)) throw_if_error(launched);
  return false;
}

// run_native for a device that needs aligned operands, or has layouts of its own.
template <size_t kRoom>
[[gnu::noinline]] bool run_placed(OwnedInputs<kRoom>* owned, const Prepared& prepared) {
  const OpCall& call = owned->call;
  Tensor made[kRoom];
  OutputWish wishes[kRoom];
  uint32_t apart = 0;
  place(owned, prepared, wishes);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const Tensor& given = call.outputs[i];
    if (wishes[i].layout != nullptr) {
      made[i] = room_in_layout(prepared.device, *wishes[i].layout);
    } else if (!given.defined()) {
      made[i] = aligned_tensor(prepared.device, prepared.written()[i], wishes[i].alignment);
    } else if (misaligned(given, wishes[i].alignment) || shares_block(call, i)) {
      made[i] = aligned_like(given, wishes[i].alignment);
      apart |= 1u << i;
    } else {
      made[i] = writable(call, given);
    }
  }
  if (!launch_on<kRoom>(call, prepared, made)) return false;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    Tensor& output = call.outputs[i];
    if (wishes[i].layout != nullptr) {
      output = result_in_layout(made[i], *wishes[i].layout, prepared.written()[i]);
    } else if (!output.defined()) {
      output = std::move(made[i]);
    } else if ((apart >> i & 1) != 0) {
      copy_back(output, made[i]);
    }
  }
  return true;
}

// The native rung: makes outputs, copies inputs that the device needs dense or better aligned, launches. False: the
// shapes are too large for the primitive, and nothing happened.
template <size_t kRoom>
bool run_native(OwnedInputs<kRoom>* owned, const Prepared& prepared) {
  const OpCall& call = owned->call;
  if (prepared.dense_inputs != 0) make_dense(owned, prepared);
  if (prepared.placed) return run_placed(owned, prepared);
  Tensor made[kRoom];
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const Tensor& given = call.outputs[i];
    if (!given.defined()) {
      made[i] = aligned_tensor(prepared.device, prepared.written()[i], 0);
    } else {
      made[i] = shares_block(call, i) ? aligned_like(given, 0) : given;
    }
  }
  if (!launch_on<kRoom>(call, prepared, made)) return false;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    Tensor& output = call.outputs[i];
    if (!output.defined()) {
      output = std::move(made[i]);
    } else if (output.impl() != made[i].impl()) {
      copy_back(output, made[i]);
    }
  }
  return true;
}

bool makes_nothing(const OpCall& call, const Prepared& prepared) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (element_count(prepared.outputs[i].dims) != 0) return false;
  }
  return !call.outputs.empty();
}

// Drops the outputs that were made for a launch: bit i of `made` for output i.
void drop_made(const OpCall& call, uint32_t made) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if ((made >> i & 1) != 0) call.outputs[i] = Tensor();
  }
}

// Throws the failure of a launch of run_at_once; returns if the shapes are too large for the primitive.
[[gnu::cold]] void refuse_at_once(const OpCall& call, const Prepared& prepared, const vm::Launched& launched) {
  const Status failure =
      vm::launch_failure(launched, {&call.op->named, note_call, &call, prepared.operand_inputs}, prepared.device);
  if (!is_beyond(failure, prepared)) throw_if_error(failure);
}

}  // namespace

template <size_t kRoom>
bool run_at_once(const OpCall& call, const Prepared& prepared) {
  if (process::attention.load(std::memory_order_relaxed) != 0) return false;
  vm::InlineWorkspace workspace;
  throw_if_error(workspace.take(prepared.device, prepared.workspace_bytes));
  uint32_t made = 0;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i].defined()) continue;
    call.outputs[i] = make_tensor_of(prepared.device, prepared.outputs[i]);
    made |= 1u << i;
  }
  ep_buffer buffers[kRoom];
  bool busy = false;
  const auto count = static_cast<uint32_t>(prepared.operands.size());
  for (uint32_t i = 0; i < count; ++i) {
    const PreparedOperand& operand = prepared.operands[i];
    if (operand.input < 0 && operand.output < 0) {
      buffers[i] = {};
      continue;
    }
    const TensorImpl& impl = operand.output >= 0 ? *call.outputs[static_cast<size_t>(operand.output)].impl()
                                                 : *call.inputs[static_cast<size_t>(operand.input)]->impl();
    busy = busy || impl.storage.busy_for_read();
    if (busy) break;  // another thread may be changing the address
    buffers[i] = address_at_hand(impl);
  }
  vm::Launched launched;
  if (!busy) [[likely]] {
    ep_scalar scalars[EP_MAX_SCALARS];
    for (uint32_t slot = 0; slot < prepared.scalar_count; ++slot) scalars[slot] = scalar_of(call, prepared, slot);
    const ep_shape* shapes = prepared.primitive->dynamic ? prepared.shapes.data() : nullptr;
    const ep_launch launch{buffers, shapes, scalars, count, prepared.scalar_count, workspace.buffer(), {}, 0};
    vm::launch_now(*prepared.primitive, prepared.device, launch, &launched);
    if (launched.ok()) [[likely]]
      return true;
  }
  drop_made(call, made);
  if (!busy) refuse_at_once(call, prepared, launched);
  return false;
}

namespace {

// Copies results whose strides differ from the inferred ones. Recorded programs rely on these strides on every rung.
void restore_order(const OpCall& call, const Prepared& prepared, uint32_t given) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    Tensor& output = call.outputs[i];
    if ((given >> i & 1) != 0 || same_layout(output.dims(), output.strides(), prepared.outputs[i].strides)) continue;
    output = dense_on_device(output, prepared.outputs[i].strides);
  }
}

}  // namespace

template <size_t kRoom>
Ran run_prepared(OwnedInputs<kRoom>* owned, const Prepared& prepared) {
  OpCall& call = owned->call;
  if (prepared.at_once && run_at_once<kRoom>(call, prepared)) return {};
  if (makes_nothing(call, prepared)) {
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (call.outputs[i].defined()) continue;
      const TensorMeta& meta = prepared.outputs[i];
      call.outputs[i] = value_or_throw(make_tensor(prepared.device, meta.dtype, meta.dims));
    }
    return {};
  }
  if (prepared.rung == Rung::native && prepared.row_major_outputs.empty()) [[likely]] {
    return {0, !run_native(owned, prepared)};
  }
  if (prepared.outdated()) return {0, true};
  prepared.count_call();
  uint32_t given = 0;
  for (size_t i = 0; i < call.outputs.size(); ++i) given |= uint32_t{call.outputs[i].defined()} << i;
  uint64_t moved = 0;
  if (prepared.rung == Rung::native) {
    if (!run_native(owned, prepared)) return {0, true};
  } else if (prepared.rung == Rung::compiled) {
    prepared.compiled->run(call);
  } else if (prepared.rung == Rung::decomposed) {
    moved = run_decomposed(call);
  } else {
    moved = run_on_host(call, prepared.device);
  }
  restore_order(call, prepared, given);
  return {moved, false};
}

template bool run_at_once<kFewOperands>(const OpCall&, const Prepared&);
template bool run_at_once<EP_MAX_OPERANDS>(const OpCall&, const Prepared&);
template Ran run_prepared<kFewOperands>(OwnedInputs<kFewOperands>*, const Prepared&);
template Ran run_prepared<EP_MAX_OPERANDS>(OwnedInputs<EP_MAX_OPERANDS>*, const Prepared&);

}  // namespace tenon
