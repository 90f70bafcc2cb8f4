#include "core/interpreter/prepared.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <utility>

#include "core/interpreter/compiled_call.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/ladder.h"
#include "core/interpreter/lower.h"
#include "core/interpreter/opaque_operands.h"
#include "core/interpreter/order.h"
#include "core/interpreter/probe.h"
#include "core/ops/decompose/decompose.h"
#include "core/ops/op_rows.h"
#include "core/primitive/compiled_module.h"
#include "core/primitive/primitive_cache.h"
#include "core/tensor/factory.h"
#include "core/tensor/opened_devices.h"
#include "core/vm/inline.h"
#include "primitives/descriptor/descriptor.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

// A copy of a call in which the inputs in `mask` have dense strides.
struct DenseInputs {
  DenseInputs(const OpCall& call, uint32_t mask, const TensorMeta& output) : call(call) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const Tensor* input = call.inputs[i];
      if (input != nullptr && (mask >> i & 1) != 0) {
        tensors[i] = make_meta(input->impl()->device,
                               {input->dtype(), input->impl()->dims, dense_strides(call, input->impl()->dims, output)});
        input = &tensors[i];
      }
      pointers[i] = input;
    }
    this->call.inputs = {pointers, call.inputs.size()};
  }
  Tensor tensors[EP_MAX_OPERANDS];
  const Tensor* pointers[EP_MAX_OPERANDS] = {};
  OpCall call;
};

// The inputs (bit i for input i) whose strides are not dense.
uint32_t strided_inputs(const OpCall& call, const TensorMeta& output) {
  uint32_t mask = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor* input = call.inputs[i];
    if (input == nullptr || input->impl()->elements == 0) continue;
    const Dims dense = dense_strides(call, input->impl()->dims, output);
    if (!same_layout(input->impl()->dims, input->impl()->strides, dense)) mask |= 1u << i;
  }
  return mask;
}

void keep_operands(const Lowering& lowering, const Resolved& resolved, Prepared* prepared) {
  for (uint32_t i = 0; i < lowering.desc.operand_count; ++i) {
    const ep_operand_desc& desc = lowering.desc.operands[i];
    PreparedOperand operand;
    operand.input = lowering.sources[i].input;
    operand.output = lowering.sources[i].output;
    operand.alignment = resolved.alignment[i];
    operand.token = descriptor::is_opaque(desc) ? desc.strides[0] : 0;
    operand.dtype = static_cast<DType>(desc.dtype);
    operand.dims = Dims(std::span(desc.dims, static_cast<size_t>(desc.rank)));
    operand.strides = Dims(std::span(desc.strides, static_cast<size_t>(desc.rank)));
    prepared->operands.push_back(operand);
  }
  prepared->packed_input = -1;
  if (const int32_t packed = prepared->primitive->pack_operand; packed >= 0) {
    prepared->packed_input = lowering.sources[static_cast<size_t>(packed)].input;
  }
  prepared->placed =
      prepared->device->layouts || std::any_of(prepared->operands.begin(), prepared->operands.end(),
                                               [](const PreparedOperand& operand) { return operand.alignment > 1; });
}

Status add_workspace(Prepared* prepared) {
  prepared->workspace_bytes = prepared->primitive->workspace_bytes;
  if (!prepared->primitive->dynamic_workspace) return {};
  ep_shape shapes[EP_MAX_OPERANDS];
  for (size_t i = 0; i < prepared->operands.size(); ++i) {
    const PreparedOperand& operand = prepared->operands[i];
    shapes[i] = {operand.dims.data(), operand.strides.data(), operand.dims.rank(), 0};
  }
  ep_error* error = nullptr;
  const ep_status code = prepared->device->ops.primitive_workspace(prepared->primitive->handle, shapes,
                                                                   static_cast<uint32_t>(prepared->operands.size()),
                                                                   &prepared->workspace_bytes, &error);
  return loader::take_error(code, error, "asking for the workspace of a launch");
}

bool is_refusal(const Status& status) { return !status.ok() && status.code() == Code::unsupported; }

// A provider's error for `call`: a refusal is unchanged, any other failure gets op and device added.
Status named(const Status& status, const OpCall& call, const DeviceState* device) {
  return status.ok() || is_refusal(status) ? status : vm::launch_error(status, call.op->name, describe(call), device);
}

void add_reason(Prepared* prepared, std::string_view rung, std::string_view reason) {
  while (!reason.empty() && reason.back() == '.') reason.remove_suffix(1);
  if (!prepared->reason.empty()) prepared->reason += "; ";
  prepared->reason += fmt::format("{}: {}", rung, reason);
}

void drop_primitive(Prepared* prepared) {
  if (Primitive* primitive = std::exchange(prepared->primitive, nullptr)) primitive->release();
}

// Asks the device for the primitive of `lowering`, and for its workspace with these shapes.
Status take_primitive(const OpCall& call, const LoweredCall& lowered, Sizes sizes, Prepared* prepared) {
  drop_primitive(prepared);
  const Lowering& lowering = lowered.lowering;
  Result<Resolved> answer =
      resolve_primitive(prepared->device, lowering.desc, lowered.scalars, lowered.scalar_count, sizes);
  if (!answer.ok()) return named(answer.status(), call, prepared->device);
  const Resolved& resolved = answer.value();
  prepared->primitive = resolved.primitive;
  prepared->reusable = !resolved.baked;
  prepared->any_strides = resolved.any_strides;
  prepared->limited = resolved.limited;
  prepared->rung = Rung::native;
  prepared->operands.clear();
  keep_operands(lowering, resolved, prepared);
  prepared->operand_inputs = lowered.operand_inputs;
  return named(add_workspace(prepared), call, prepared->device);
}

// Creates the primitive with the device's preferred layouts, if the device has layouts and prefers some here.
bool take_opaque(const OpCall& call, const LoweredCall& plain, Prepared* prepared) {
  LoweredCall lowered = plain;
  if (!prepared->device->layouts || !choose_layouts(call, prepared->device, prepared->written(), &lowered.lowering)) {
    return false;
  }
  const Status taken = take_primitive(call, lowered, Sizes::numbers, prepared);
  if (!taken.ok()) add_reason(prepared, "native in the device's layouts", taken.message());
  return taken.ok();
}

// Flags the operands of inputs that never change, if the device can pack them. An input that is used as two operands is
// not flagged.
void flag_constants(const Prepared& prepared, Lowering* lowering) {
  if (prepared.constants == 0 || prepared.device->ops.primitive_pack == nullptr) return;
  const auto end = lowering->sources.begin() + lowering->desc.operand_count;
  for (uint32_t i = 0; i < lowering->desc.operand_count; ++i) {
    const int16_t input = lowering->sources[i].input;
    if (input < 0 || (prepared.constants >> input & 1) == 0) continue;
    const auto reads = [&](const Lowering::Source& source) { return source.input == input; };
    if (std::count_if(lowering->sources.begin(), end, reads) == 1) {
      lowering->desc.operands[i].flags |= EP_OPERAND_FLAG_CONSTANT;
    }
  }
}

// Tries the device's own primitive for the unchanged `call`. If the device refuses these shapes when asked for their
// workspace, the primitive is created with numbers instead of open dims.
Status try_native(const OpCall& call, Sizes sizes, Prepared* prepared) {
  LoweredCall lowered;
  TENON_RETURN_IF_ERROR(lower_call(call, prepared->written(), &lowered));
  flag_constants(*prepared, &lowered.lowering);
  std::copy(lowered.lowering.scalar_dtypes.begin(), lowered.lowering.scalar_dtypes.end(), prepared->scalar_dtypes);
  prepared->scalar_count = lowered.scalar_count;
  if (take_opaque(call, lowered, prepared)) return {};
  Status status = take_primitive(call, lowered, sizes, prepared);
  if (is_refusal(status) && prepared->primitive != nullptr && prepared->primitive->dynamic) {
    add_reason(prepared, "native with open sizes", status.message());
    status = take_primitive(call, lowered, Sizes::numbers, prepared);
  }
  if (!status.ok()) drop_primitive(prepared);
  return status;
}

// True if the device or the machine failed. Such a failure does not say what the device can do.
bool is_trouble(Code code) {
  return code == Code::internal || code == Code::device_lost || code == Code::out_of_host_memory ||
         code == Code::out_of_device_memory || code == Code::cancelled;
}

// "with input 1 made dense", "with inputs 0, 2 made dense"
std::string with_dense(uint32_t inputs) {
  std::string text = std::has_single_bit(inputs) ? "with input " : "with inputs ";
  for (const uint32_t all = inputs; inputs != 0; inputs &= inputs - 1) {
    text += fmt::format("{}{}", inputs == all ? "" : ", ", std::countr_zero(inputs));
  }
  return fmt::format("{} made dense", text);
}

// Makes the new outputs of `call` row-major for the primitive. False: they already are.
bool order_outputs(const OpCall& call, Prepared* prepared) {
  std::vector<TensorMeta> metas = prepared->outputs;
  bool other = false;
  for (size_t i = 0; i < metas.size(); ++i) {
    if (call.outputs[i].defined() || is_contiguous(metas[i].dims, metas[i].strides)) continue;
    metas[i].strides = contiguous_strides(metas[i].dims);
    other = true;
  }
  if (other) prepared->row_major_outputs = std::move(metas);
  return other;
}

// A change under which the native rung is tried again for a call that the device refused.
struct Change {
  uint32_t dense_inputs = 0;
  bool row_major_outputs = false;
  std::string text() const {
    if (!row_major_outputs) return with_dense(dense_inputs);
    return dense_inputs == 0 ? "with row-major results" : with_dense(dense_inputs) + " and row-major results";
  }
};

// Tries the native rung for `call` with strided inputs made dense, and then also with row-major results. If neither
// applies, returns `direct`, the answer to the unchanged call.
Status try_changed(const OpCall& call, Sizes sizes, const Status& direct, Prepared* prepared) {
  Status status = direct;
  std::vector<std::pair<std::string, std::string>> refusals;
  for (const bool row_major : {false, true}) {
    if (row_major && !order_outputs(call, prepared)) break;
    const TensorMeta& output = prepared->written()[0];
    const Change change{strided_inputs(call, output), row_major};
    if (change.dense_inputs == 0 && !row_major) continue;
    const DenseInputs dense(call, change.dense_inputs, output);
    status = try_native(dense.call, sizes, prepared);
    if (status.ok()) {
      prepared->dense_inputs = change.dense_inputs;
      add_reason(prepared, fmt::format("taken {}, refused before", change.text()), direct.message());
    }
    if (!is_refusal(status)) return status;
    if (status.message() != direct.message()) refusals.emplace_back(change.text(), status.message());
  }
  prepared->row_major_outputs.clear();
  add_reason(prepared, "native", direct.message());
  for (const auto& [how, why] : refusals) add_reason(prepared, fmt::format("native {}", how), why);
  return status;
}

// Tries the native rung for the unchanged `call`, then changed. The op cast is what makes tensors dense, so a cast is
// tried only once.
Status try_native_rungs(const OpCall& call, Sizes sizes, Prepared* prepared) {
  const Status direct = try_native(call, sizes, prepared);
  if (!is_refusal(direct)) return direct;
  if (call.op != &op_row(OpId::cast)) return try_changed(call, sizes, direct, prepared);
  add_reason(prepared, "native", direct.message());
  return direct;
}

Status nothing_serves(const OpCall& call, const Prepared& prepared, loader::Fallback lowest) {
  constexpr std::string_view names[] = {"native", "decompose", "compile", "host"};
  return Status(Failure{
      .code = Code::unsupported,
      .subject = std::string(call.op->name),
      .arguments = arguments_text(call),
      .reason = fmt::format("cannot run on {} with fallback {}: {}.", prepared.device->opened->spelling,
                            names[static_cast<size_t>(lowest)], prepared.reason),
      .advice = lowest == loader::Fallback::host ? "" : "Allow a lower rung with TENON_FALLBACK=host.",
  });
}

// Uses the kernels of `call`, if the device has compiled them. Kernels that `prepared` awaits are compiled in the
// background.
bool take_compiled(const OpCall& call, Prepared* prepared) {
  const loader::Settings& settings = loader::settings();
  if (settings.fallback < loader::Fallback::compile || settings.fuse != loader::Fuse::on) return false;
  if (!call_context.compiles) return settings.fallback == loader::Fallback::compile && takes_modules(prepared->device);
  if (settings.check == loader::Check::compile) {
    add_reason(prepared, "compiled", "TENON_CHECK compares kernels with ops that run on other rungs");
    return false;
  }
  CompiledAnswer answer = compiled_call(call, prepared->device, prepared->outputs);
  if (!answer.why_not.empty()) {
    add_reason(prepared, "compiled", answer.why_not);
    return false;
  }
  if (answer.calls_left != nullptr) {
    add_reason(prepared, "compiled", fmt::format("kernels are compiled after {} calls", kCallsBeforeKernels));
    prepared->calls_left = std::move(answer.calls_left);
    return false;
  }
  if (answer.left != nullptr) {
    add_reason(prepared, "compiled", "its kernels are being compiled");
    prepared->awaited = std::move(answer.left);
    return false;
  }
  prepared->compiled = std::move(answer.call);
  prepared->reusable = !answer.baked;
  prepared->rung = Rung::compiled;
  return true;
}

// Chooses among the rungs below native.
Status descend(const OpCall& call, Prepared* prepared) {
  if (take_compiled(call, prepared)) return {};
  const loader::Fallback lowest = loader::settings().fallback;
  if (lowest >= loader::Fallback::decompose && ops::has_decomposition(call)) {
    const Status probed = probe_decomposition(call);
    if (probed.ok()) {
      prepared->rung = Rung::decomposed;
      return {};
    }
    if (is_trouble(probed.code())) return probed;
    add_reason(prepared, "decomposed", probed.message());
  }
  if (lowest >= loader::Fallback::host) {
    const Result<DeviceState*> host = host_device_state();
    if (!host.ok()) return host.status();
    if (host.value() != prepared->device) {
      prepared->rung = Rung::host;
      return {};
    }
  }
  return nothing_serves(call, *prepared, lowest);
}

// True if run_at_once can launch `prepared`.
bool is_at_once(const Prepared& prepared) {
  const DeviceState& device = *prepared.device;
  if (prepared.nested() || prepared.primitive == nullptr || prepared.placed || prepared.packed_input >= 0) return false;
  if (!device.synchronous || device.layouts || device.exclusive) return false;
  if (prepared.primitive->scratch_bytes != 0) return false;
  return std::all_of(prepared.outputs.begin(), prepared.outputs.end(), [](const TensorMeta& meta) {
    return element_count(meta.dims) != 0 && checked_elements(meta.dims, meta.dtype).ok();
  });
}

}  // namespace

Prepared::~Prepared() {
  if (primitive != nullptr) primitive->release();
}

uint64_t Prepared::bytes() const {
  const bool own = primitive != nullptr && !primitive->dynamic;
  return sizeof(Prepared) + (own ? primitive->host_bytes + primitive->device_bytes : 0) +
         key.capacity() * sizeof(uint64_t) + reason.capacity() + (compiled != nullptr ? compiled->bytes() : 0) +
         (outputs.capacity() + row_major_outputs.capacity()) * sizeof(TensorMeta) +
         operands.capacity() * (sizeof(PreparedOperand) + sizeof(ep_shape));
}

Result<std::unique_ptr<Prepared>> prepare(const OpCall& call, DeviceState* device, Reach reach, Sizes sizes,
                                          uint32_t constants) {
  auto prepared = std::make_unique<Prepared>();
  prepared->op = call.op;
  prepared->device = device;
  prepared->sizes = sizes;
  prepared->constants = constants;
  TENON_RETURN_IF_ERROR(infer_outputs(call, &prepared->outputs));
  Status status;
  bool empty = !prepared->outputs.empty();
  for (const TensorMeta& meta : prepared->outputs) empty = empty && element_count(meta.dims) == 0;
  if (!empty && ops::is_of_nothing(call)) {
    prepared->rung = Rung::decomposed;
  } else if (!empty) {
    status = try_native_rungs(call, sizes, prepared.get());
    if (is_refusal(status) && reach == Reach::setting) status = descend(call, prepared.get());
  }
  if (!status.ok()) return status;
  prepared->at_once = is_at_once(*prepared);
  for (const PreparedOperand& operand : prepared->operands) {
    if (!prepared->at_once) break;
    prepared->shapes.push_back({operand.dims.data(), operand.strides.data(), operand.dims.rank(), 0});
  }
  return prepared;
}

}  // namespace tenon
