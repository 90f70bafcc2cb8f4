// The path of one op, hottest first: an elementwise op whose layout class was seen before, on a synchronous device,
// runs in apply_known; everything else takes run.
#include "core/interpreter/eager.h"

#include <memory>
#include <vector>

#include "core/device/device_state.h"
#include "core/device/process.h"
#include "core/interpreter/call_key.h"
#include "core/interpreter/choice.h"
#include "core/interpreter/elementwise.h"
#include "core/interpreter/plan.h"
#include "core/interpreter/transfer.h"
#include "core/ops/attributes.h"
#include "core/ops/op_rows.h"
#include "core/tensor/factory.h"
#include "core/vm/inline.h"
#include "core/vm/storage.h"
#include "core/vm/vm.h"
#include "primitives/status/sentence.h"

namespace tenon {
namespace {

// The failure of an inline launch. Releases `error`.
Status launch_failure(ep_status code, const ep_fault& fault, ep_error* error, const OpCall& call,
                      const DeviceState* device) {
  Status cause = loader::take_error(code, error, {});
  if (code == EP_STATUS_FAULT && fault.code != 0) cause = Status(Code::fault, vm::fault_sentence(fault));
  return vm::launch_error(cause, call.op->name, describe(call), device);
}

ep_buffer place(const TensorImpl& impl) {
  return impl.storage->block.at(impl.offset == 0 ? 0 : static_cast<uint64_t>(dtype_bytes(impl.dtype, impl.offset)));
}

// --- elementwise ops of a known layout class -------------------------------------------------------------------------

// The key of a folded call: two words that say everything but the lengths of axes. `scalars_at` has bit i for operand i
// (0 the output), `layout` two bits per operand and axis: stride 0, 1, or more.
struct ElementwiseKey {
  uint64_t words[2];

  ElementwiseKey(const OpInfo& op, const DeviceState* device, DType compute, uint64_t rank, uint64_t scalars_at,
                 uint64_t layout)
      : words{uint64_t{op.id} | uint64_t{device->id} << 16 | static_cast<uint64_t>(compute) << 32 | rank << 40 |
                  scalars_at << 48 | uint64_t{1} << 63,
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
  return {*call.op, device, folded.compute, static_cast<uint64_t>(folded.rank), scalars_at, layout};
}

// The common case, folded without a walk: all tensors contiguous and of one shape. False: not that case.
bool fold_flat(const OpCall& call, FoldedCall* folded) {
  const uint32_t arity = elementwise_arity(call.op->kind);
  const TensorImpl* first = nullptr;
  folded->operand_count = arity + 1;
  folded->strides[0][0] = 1;
  for (uint32_t i = 0; i < arity; ++i) {
    const Tensor* input = i < call.inputs.size() ? call.inputs[i] : nullptr;
    folded->tensors[i + 1] = input;
    if (input == nullptr) continue;
    const TensorImpl& impl = *input->impl();
    if (!impl.contiguous || impl.storage == nullptr) return false;
    if (first == nullptr) {
      first = &impl;
    } else if (first->device != impl.device || !(first->dims == impl.dims)) {
      return false;
    }
    if (i == 0 && call.op->cond_first) {
      if (impl.dtype != DType::boolean) return false;
    } else if (folded->compute == DType::none) {
      folded->compute = impl.dtype;
    } else if (folded->compute != impl.dtype) {
      return false;
    }
    folded->strides[i + 1][0] = 1;
  }
  if (first == nullptr || first->elements == 0 || folded->compute == DType::none) return false;
  folded->rank = 1;
  folded->dims[0] = first->elements;
  return true;
}

// True if `output`, given by the caller, can be written as it is: dense, of the result's type, and sharing memory with
// inputs[0] as its exact alias or not at all.
bool writable_flat(const OpCall& call, const Tensor& output, DType dtype, const TensorImpl& shaped) {
  const TensorImpl& out = *output.impl();
  if (!out.contiguous || out.dtype != dtype || !(out.dims == shaped.dims) || out.storage == nullptr) return false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    const TensorImpl& in = *call.inputs[i]->impl();
    if (in.device != out.device) return false;
    if (in.storage == out.storage && !(i == 0 && in.offset == out.offset && in.dtype == out.dtype)) return false;
  }
  return !out.storage->busy_for_read();
}

// Runs `call` if all its tensors are contiguous, of one shape and on one synchronous device, its class has a kernel,
// and nothing asks for attention. False: nothing happened. This is the way of most ops, so it is written out: no fold,
// no structure that has to be filled first.
template <uint32_t kArity>
bool apply_flat(const OpCall& call) {
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
    if (!impl.contiguous || impl.storage == nullptr || impl.storage->busy_for_read()) return false;
    if (shaped == nullptr) {
      shaped = &impl;
    } else if (shaped->device != impl.device || !(shaped->dims == impl.dims)) {
      return false;
    }
    const bool condition = i == 0 && call.op->cond_first;
    if (condition ? impl.dtype != DType::boolean : compute != DType::none && compute != impl.dtype) return false;
    if (!condition) compute = impl.dtype;
    buffers[i + 1] = place(impl);
  }
  if (shaped == nullptr || shaped->elements == 0 || compute == DType::none || !shaped->device->synchronous)
    return false;
  DeviceState* device = shaped->device;
  elements = shaped->elements;
  const ElementwiseKey key(*call.op, device, compute, 1, scalars_at, layout);
  ElementwiseChoice& choice = choice_tables().elementwise(key.words);
  if (choice.key[0] != key.words[0] || choice.key[1] != key.words[1] || choice.kernel == nullptr) return false;

  const DType result = call.op->bool_result ? DType::boolean : compute;
  Tensor& output = call.outputs[0];
  const bool given = output.defined();
  if (given && !writable_flat(call, output, result, *shaped)) return false;
  if (!given) output = value_or_throw(make_tensor_like(*shaped, result));
  buffers[0] = place(*output.impl());
  shapes[0] = {&elements, kUnit, 1, 0};
  ep_scalar scalars[3];
  const auto scalar_count = static_cast<uint32_t>(std::min<size_t>(call.scalars.size(), 3));
  for (uint32_t slot = 0; slot < scalar_count; ++slot) scalars[slot] = call.scalars[slot].to_abi(compute);

  const ep_launch launch{buffers, shapes, scalars, kArity + 1, scalar_count, {}, {}, 0};
  ep_fault fault;
  fault.code = 0;
  ep_error* error = nullptr;
  const ep_status code =
      device->ops.primitive_launch(choice.kernel->primitive, device->inline_stream, &launch, &fault, &error);
  Counters::add(choice.counters.launches, 1);
  if (code != EP_STATUS_OK) [[unlikely]] {
    if (!given) output = Tensor();
    throw Error(launch_failure(code, fault, error, call, device));
  }
  if (given) output.impl()->storage->version.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool apply_known(const OpCall& call) {
  switch (call.op->kind) {
    case EP_PRIMITIVE_unary: return apply_flat<1>(call);
    case EP_PRIMITIVE_binary: return apply_flat<2>(call);
    case EP_PRIMITIVE_ternary: return apply_flat<3>(call);
    default: return false;
  }
}

// --- everything else -------------------------------------------------------------------------------------------------

// Bytes [first, last) of its storage that a tensor can touch.
struct ByteRange {
  int64_t first, last;
  explicit ByteRange(const Tensor& tensor) {
    const TensorImpl& impl = *tensor.impl();
    first = dtype_bytes(impl.dtype, impl.offset);
    last = first + (impl.elements == 0 ? 0 : dtype_bytes(impl.dtype, span_elements(tensor)));
  }
};

bool same_elements(const TensorImpl& a, const TensorImpl& b) {
  return a.storage == b.storage && a.offset == b.offset && a.dtype == b.dtype && a.dims == b.dims &&
         a.strides == b.strides;
}

bool overlap(const Tensor& a, const Tensor& b) {
  if (a.impl()->storage != b.impl()->storage) return false;
  const ByteRange ra(a);
  const ByteRange rb(b);
  return ra.first < rb.last && rb.first < ra.last;
}

// A call with its inputs under its own hands, so that some can be replaced by copies. Most calls have few tensors, so
// what follows is written for kRoom of them: filling room for 16 costs as much as a small op.
template <size_t kRoom>
struct OwnedInputs {
  explicit OwnedInputs(const OpCall& call) : call(call) {
    std::copy(call.inputs.begin(), call.inputs.end(), pointers);
    this->call.inputs = {pointers, call.inputs.size()};
  }
  void replace(size_t index, Tensor tensor) {
    tensors[index] = std::move(tensor);
    pointers[index] = &tensors[index];
    copied_bytes += static_cast<uint64_t>(tensors[index].bytes());
  }
  Tensor tensors[kRoom];
  const Tensor* pointers[kRoom];
  OpCall call;
  uint64_t copied_bytes = 0;
};

// Copies the inputs that an output given by the caller overlaps in any way the kind does not allow.
template <size_t kRoom>
void separate_overlaps(OwnedInputs<kRoom>* owned) {
  const OpCall& call = owned->call;
  for (const Tensor& output : call.outputs) {
    if (!output.defined()) continue;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (owned->pointers[i] == nullptr || !overlap(*owned->pointers[i], output)) continue;
      if (i == call.op->alias_input && same_elements(*owned->pointers[i]->impl(), *output.impl())) continue;
      owned->replace(i, dense_on_device(*owned->pointers[i]));
    }
  }
}

// Blocks begin as aligned as their device's memory is; memory that somebody else owns begins anywhere.
bool misaligned(const Tensor& tensor, int32_t alignment) {
  if (alignment <= 1) return false;
  const memory::Block& block = tensor.impl()->storage->block;
  const uint64_t begin = block.owner == nullptr ? reinterpret_cast<uintptr_t>(block.host) : 0;
  return (begin + place(*tensor.impl()).offset) % static_cast<uint64_t>(alignment) != 0;
}

// An uninitialised row-major tensor whose first element is aligned.
Tensor aligned_tensor(DeviceState* device, const TensorMeta& meta, int32_t alignment) {
  Tensor tensor = value_or_throw(make_tensor(device, meta.dtype, meta.dims));
  if (!misaligned(tensor, alignment)) return tensor;
  const int64_t size = dtype_size(meta.dtype);
  const Tensor roomy =
      value_or_throw(make_tensor(device, meta.dtype, Dims{element_count(meta.dims) + alignment / size}));
  const auto past = static_cast<int64_t>(place(*roomy.impl()).offset % static_cast<uint64_t>(alignment));
  return make_view(roomy, meta.dtype, meta.dims, contiguous_strides(meta.dims),
                   past == 0 ? 0 : (alignment - past) / size);
}

// A copy of `tensor` in the same layout that starts at a multiple of `alignment` bytes. The device's plain copy makes
// it, which asks for no alignment, so that the primitives that do can rely on it.
Tensor realigned(const Tensor& tensor, int32_t alignment) {
  const int64_t reach = span_elements(tensor);
  const Tensor block = aligned_tensor(tensor.impl()->device, {tensor.dtype(), Dims{reach}, {}}, alignment);
  const auto bytes = static_cast<uint64_t>(dtype_bytes(tensor.dtype(), reach));
  const vm::Operand dst{block.impl()->storage, static_cast<uint64_t>(dtype_bytes(tensor.dtype(), block.impl()->offset)),
                        true, false};
  const vm::Operand src{tensor.impl()->storage,
                        static_cast<uint64_t>(dtype_bytes(tensor.dtype(), tensor.impl()->offset)), false, false};
  throw_if_error(vm::copy(dst, src, bytes, {}));
  return make_view(block, tensor.dtype(), tensor.dims(), tensor.strides(), block.impl()->offset);
}

// The operands of one launch of a plan.
template <size_t kRoom>
struct LaunchOperands {
  vm::Operand operands[kRoom];
  ep_shape shapes[kRoom];
  ep_scalar scalars[EP_MAX_SCALARS];
  uint32_t count = 0;
  uint32_t scalar_count = 0;
  bool busy = false;
};

bool reads(const OpCall& call, const Storage* storage) {
  for (const Tensor* input : call.inputs) {
    if (input != nullptr && input->impl()->storage == storage) return true;
  }
  return false;
}

template <size_t kRoom>
void collect(const OpCall& call, const Plan& plan, LaunchOperands<kRoom>* launch) {
  launch->count = static_cast<uint32_t>(plan.operands.size());
  for (uint32_t i = 0; i < launch->count; ++i) {
    const PlanOperand& operand = plan.operands[i];
    launch->shapes[i] = {operand.dims.data(), operand.strides.data(), operand.dims.rank(), 0};
    if (operand.input < 0 && operand.output < 0) {
      launch->operands[i] = {};
      continue;
    }
    const bool write = operand.output >= 0;
    const TensorImpl& impl = write ? *call.outputs[static_cast<size_t>(operand.output)].impl()
                                   : *call.inputs[static_cast<size_t>(operand.input)]->impl();
    const auto offset = static_cast<uint64_t>(dtype_bytes(impl.dtype, impl.offset));
    const bool whole = write && impl.contiguous &&
                       static_cast<uint64_t>(dtype_bytes(impl.dtype, impl.elements)) == impl.storage->bytes &&
                       !reads(call, impl.storage);
    launch->operands[i] = {impl.storage, offset, write, whole};
    launch->busy = launch->busy || impl.storage->busy_for_read();
  }
  launch->scalar_count = plan.scalar_count;
  for (uint32_t slot = 0; slot < plan.scalar_count; ++slot) {
    const DType dtype = plan.scalar_dtypes[slot];
    launch->scalars[slot] = dtype == DType::none ? ep_scalar{} : call.scalars[slot].to_abi(dtype);
  }
}

template <size_t kRoom>
Status launch_inline(const OpCall& call, const Plan& plan, const LaunchOperands<kRoom>& operands) {
  ep_buffer buffers[kRoom];
  for (uint32_t i = 0; i < operands.count; ++i) {
    const vm::Operand& operand = operands.operands[i];
    buffers[i] = operand.storage == nullptr ? ep_buffer{} : operand.storage->block.at(operand.offset);
  }
  const ep_launch launch{buffers,
                         plan.kernel->dynamic ? operands.shapes : nullptr,
                         operands.scalars,
                         operands.count,
                         operands.scalar_count,
                         {},
                         {},
                         0};
  ep_fault fault{};
  ep_error* error = nullptr;
  const ep_status code =
      plan.device->ops.primitive_launch(plan.kernel->primitive, plan.device->inline_stream, &launch, &fault, &error);
  return code == EP_STATUS_OK ? Status() : launch_failure(code, fault, error, call, plan.device);
}

std::string describe_call(const void* context) { return describe(*static_cast<const OpCall*>(context)); }

template <size_t kRoom>
Status launch_native(const OpCall& call, const Plan& plan) {
  LaunchOperands<kRoom> operands;
  collect(call, plan, &operands);
  const bool quiet = process::attention.load(std::memory_order_relaxed) == 0 && !operands.busy;
  const bool bare = plan.workspace_bytes == 0 && plan.kernel->scratch_bytes == 0;
  if (plan.device->synchronous && quiet && bare) return launch_inline(call, plan, operands);
  vm::OpLaunch launch;
  launch.kernel = plan.kernel;
  launch.operands = {operands.operands, operands.count};
  launch.shapes = plan.kernel->dynamic ? operands.shapes : nullptr;
  launch.scalars = operands.scalars;
  launch.scalar_count = operands.scalar_count;
  launch.workspace_bytes = plan.workspace_bytes;
  launch.op = call.op->name;
  launch.describe = describe_call;
  launch.context = &call;
  launch.stream = vm::current_stream(plan.device);
  return vm::launch(launch, {});
}

// Runs the native rung: makes outputs, copies inputs that the device wants contiguous or better aligned, launches.
template <size_t kRoom>
void run_native(OwnedInputs<kRoom>* owned, const Plan& plan) {
  OpCall& call = owned->call;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if ((plan.dense_inputs >> i & 1) != 0) owned->replace(i, dense_on_device(*owned->pointers[i]));
  }
  Tensor made[kRoom];
  int32_t output_alignment[kRoom] = {};
  for (const PlanOperand& operand : plan.operands) {
    if (operand.output >= 0) {
      int32_t& wanted = output_alignment[operand.output];
      wanted = std::max(wanted, operand.alignment);
    } else if (operand.input >= 0 && misaligned(*owned->pointers[operand.input], operand.alignment)) {
      owned->replace(static_cast<size_t>(operand.input), realigned(*owned->pointers[operand.input], operand.alignment));
    }
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const Tensor& given = call.outputs[i];
    made[i] = given.defined() && !misaligned(given, output_alignment[i])
                  ? given
                  : aligned_tensor(plan.device, plan.outputs[i], output_alignment[i]);
  }
  OpCall inner = call;
  inner.outputs = {made, call.outputs.size()};
  throw_if_error(launch_native<kRoom>(inner, plan));
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    Tensor& output = call.outputs[i];
    if (output.defined() && output.impl() != made[i].impl())
      copy_elements(output, made[i]);
    else
      output = std::move(made[i]);
  }
}

void record(const OpCall& call, const Plan& plan, uint64_t bytes_copied) {
  ExecutionEntry entry{std::string(call.op->name),
                       plan.device->opened->spelling,
                       plan.kernel ? plan.kernel->implementation : "",
                       plan.rung,
                       plan.reason,
                       1,
                       bytes_copied};
  note_execution(std::move(entry));
}

// An elementwise plan whose kernel serves every shape of its layout class is found by class from now on.
void learn(const OpCall& call, const Plan& plan) {
  if (plan.rung != Rung::native || plan.kernel == nullptr || !plan.kernel->dynamic || plan.dense_inputs != 0) return;
  if (!plan.reusable || plan.workspace_bytes != 0 || plan.kernel->dynamic_workspace || plan.kernel->scratch_bytes != 0)
    return;
  for (const PlanOperand& operand : plan.operands) {
    if (operand.alignment > 1 || dtype_size(operand.dtype) == 0) return;
  }
  for (const Tensor& output : call.outputs) {
    if (output.defined() && !output.contiguous()) return;  // the kernel is one of that layout
  }
  FoldedCall folded;
  if (!fold_flat(call, &folded)) return;
  const ElementwiseKey key = key_of(call, plan.device, folded);
  ChoiceTables& tables = choice_tables();
  plan.kernel->retain();
  tables.set(tables.elementwise(key.words), key.words, plan.kernel, call.op);
}

template <size_t kRoom>
void run_plan(OwnedInputs<kRoom>* owned, Plan* plan) {
  OpCall& call = owned->call;
  bool nothing = true;
  for (size_t i = 0; i < call.outputs.size(); ++i) nothing = nothing && element_count(plan->outputs[i].dims) == 0;
  if (nothing && !call.outputs.empty()) {
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (call.outputs[i].defined()) continue;
      call.outputs[i] = value_or_throw(make_tensor(plan->device, plan->outputs[i].dtype, plan->outputs[i].dims));
    }
    return;
  }
  uint64_t moved = 0;
  const Plan::InUse in_use(*plan);
  switch (plan->rung) {
    case Rung::native: run_native(owned, *plan); break;
    case Rung::decomposed: run_decomposed(call); break;
    case Rung::host: moved = run_on_host(call, plan->device); break;
    case Rung::compiled: break;
  }
  Counters::add(plan->counters.launches, 1);
  Counters::add(plan->counters.bytes_copied, moved + owned->copied_bytes);
  if (process::attention.load(std::memory_order_relaxed) & process::kReport)
    record(call, *plan, moved + owned->copied_bytes);
}

void check_data(const OpCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == nullptr || call.inputs[i]->impl()->storage != nullptr) continue;
    refuse_recorded(sentence(call.op->name, ": argument ", i), *call.inputs[i]);
  }
}

bool viewable(const OpCall& call) {
  return call.inputs[0]->impl()->storage != nullptr &&
         !(process::attention.load(std::memory_order_relaxed) & process::kForked);
}

void run_view(const OpCall& call) {
  Tensor view = begin_view(*call.inputs[0]->impl());
  throw_if_error(call.op->view(call, view.impl()));
  settle_layout(view.impl());
  call.outputs[0] = std::move(view);
}

template <size_t kRoom>
void run_in(const OpCall& call, DeviceState* device) {
  uint32_t given = 0;
  for (size_t i = 0; i < call.outputs.size(); ++i) given |= uint32_t{call.outputs[i].defined()} << i;
  OwnedInputs<kRoom> owned(call);
  if (given != 0) separate_overlaps(&owned);
  const CallKey key(owned.call, device);
  ChoiceTables& tables = choice_tables();
  Plan* plan = tables.find(key.data(), key.size());
  std::unique_ptr<Plan> once;
  if (plan == nullptr) [[unlikely]] {
    once.reset(value_or_throw(make_plan(owned.call, device, Reach::setting)));
    once->key.assign(key.data(), key.data() + key.size());
    plan = once.get();
    if (call.op->form == OpForm::elementwise) learn(owned.call, *plan);
  }
  run_plan(&owned, plan);
  for (size_t i = 0; given != 0 && i < call.outputs.size(); ++i) {
    if (given >> i & 1) call.outputs[i].impl()->storage->version.fetch_add(1, std::memory_order_relaxed);
  }
  if (once != nullptr && once->reusable) tables.insert(std::move(once));
}

void run(const OpCall& call) {
  if (process::attention.load(std::memory_order_relaxed) & process::kForked) {
    throw Error(
        Code::internal,
        sentence(call.op->name, ": this process was forked from one that had opened devices, which it cannot use."),
        "Fork before the first use of Tenon, or start the program anew with exec.");
  }
  check_data(call);
  if (call.op->form == OpForm::view) return run_view(call);
  const size_t tensors = call.inputs.size() + call.outputs.size();
  if (tensors > EP_MAX_OPERANDS) {
    throw Error(Code::invalid_argument, sentence(call.op->name, ": ", call.inputs.size(), " inputs and ",
                                                 call.outputs.size(), " outputs are more than ", EP_MAX_OPERANDS, "."));
  }
  DeviceState* device = value_or_throw(device_of(call));
  constexpr size_t kFew = 5;
  tensors <= kFew ? run_in<kFew>(call, device) : run_in<EP_MAX_OPERANDS>(call, device);
}

// It has no state of its own: its tables belong to threads.
class EagerInterpreter final : public Interpreter {
 public:
  void apply(const OpCall& call) override {
    if (call.op->form == OpForm::elementwise && apply_known(call)) [[likely]]
      return;
    if (call.op->form == OpForm::view && viewable(call)) return run_view(call);
    run(call);
  }
  bool host_value_known(const Tensor&) override { return true; }
};

}  // namespace

void copy_elements(Tensor& dst, const Tensor& src) {
  CastAttributes attributes{};
  attributes.dtype = dst.dtype();
  const Tensor* inputs[] = {&src};
  OpCall call;
  call.op = &op_row(OpId::cast);
  call.inputs = inputs;
  call.attributes = &attributes;
  call.outputs = {&dst, 1};
  eager_interpreter().apply(call);
}

Tensor dense_on_device(const Tensor& tensor) {
  Tensor copy = value_or_throw(make_tensor(tensor.impl()->device, tensor.dtype(), tensor.dims()));
  if ((process::attention.load(std::memory_order_relaxed) & process::kReport) == 0) {
    copy_elements(copy, tensor);
    return copy;
  }
  std::vector<ExecutionEntry> entries;
  {
    ExecutionScope scope;
    copy_elements(copy, tensor);
    entries = scope.take();
  }
  for (ExecutionEntry& entry : entries) {
    entry.op = kDenseCopy;
    note_execution(std::move(entry));
  }
  return copy;
}

Interpreter& eager_interpreter() {
  static constinit EagerInterpreter interpreter;
  return interpreter;
}

}  // namespace tenon
