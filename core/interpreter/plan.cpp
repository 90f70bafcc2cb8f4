#include "core/interpreter/plan.h"

#include <bit>
#include <memory>
#include <string>

#include "core/interpreter/elementwise.h"
#include "core/interpreter/probe.h"
#include "core/kernel/kernel_cache.h"
#include "core/tensor/factory.h"
#include "core/tensor/opened_devices.h"
#include "core/vm/inline.h"
#include "primitives/status/sentence.h"

namespace tenon {
namespace {

std::string place(const Tensor& tensor, size_t index) {
  return sentence(tensor.device().spelling(), " (argument ", index, ")");
}

Status check_given(const OpCall& call, size_t index, const TensorMeta& meta) {
  const Tensor& given = call.outputs[index];
  if (given.dtype() != meta.dtype || !(given.dims() == meta.dims)) {
    return Status(Code::invalid_argument,
                  sentence(call.op->name, ": output ", index, " is ", dtype_name(given.dtype()), " ", given.dims(),
                           ", but the result is ", dtype_name(meta.dtype), " ", meta.dims, "."));
  }
  for (int32_t axis = 0; axis < given.rank(); ++axis) {
    if (given.dims()[axis] > 1 && given.strides()[axis] == 0) {
      return Status(Code::invalid_argument,
                    sentence(call.op->name, ": output ", index, " of shape ", given.dims(),
                             " is an expanded view: several of its elements share one place in memory (axis ", axis,
                             " has stride 0), so it cannot be written."),
                    "Write into a copy made with contiguous().");
    }
  }
  return {};
}

// A call whose inputs in `mask` are taken as contiguous.
struct DenseInputs {
  DenseInputs(const OpCall& call, uint32_t mask) : call(call) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const Tensor* input = call.inputs[i];
      if (input != nullptr && (mask >> i & 1) != 0) {
        tensors[i] =
            make_meta(input->impl()->device, {input->dtype(), input->dims(), contiguous_strides(input->dims())});
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

uint32_t strided_inputs(const OpCall& call) {
  uint32_t mask = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] != nullptr && !call.inputs[i]->contiguous()) mask |= 1u << i;
  }
  return mask;
}

Status lower(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  lowering->desc.kind = call.op->kind;
  if (call.op->form == OpForm::elementwise) return lower_elementwise(call, outputs[0], lowering);
  return call.op->lower(call, outputs, lowering);
}

void keep_operands(const Lowering& lowering, const Resolved& resolved, Plan* plan) {
  for (uint32_t i = 0; i < lowering.desc.operand_count; ++i) {
    const ep_operand_desc& desc = lowering.desc.operands[i];
    PlanOperand operand;
    operand.input = lowering.sources[i].input;
    operand.output = lowering.sources[i].output;
    operand.alignment = resolved.alignment[i];
    operand.dtype = static_cast<DType>(desc.dtype);
    operand.dims = Dims(std::span(desc.dims, static_cast<size_t>(desc.rank)));
    operand.strides = Dims(std::span(desc.strides, static_cast<size_t>(desc.rank)));
    plan->operands.push_back(operand);
  }
}

Status add_workspace(Plan* plan) {
  plan->workspace_bytes = plan->kernel->workspace_bytes;
  if (!plan->kernel->dynamic_workspace) return {};
  ep_shape shapes[EP_MAX_OPERANDS];
  for (size_t i = 0; i < plan->operands.size(); ++i) {
    const PlanOperand& operand = plan->operands[i];
    shapes[i] = {operand.dims.data(), operand.strides.data(), operand.dims.rank(), 0};
  }
  ep_error* error = nullptr;
  const ep_status code = plan->device->ops.primitive_workspace(
      plan->kernel->primitive, shapes, static_cast<uint32_t>(plan->operands.size()), &plan->workspace_bytes, &error);
  return loader::take_error(code, error, "asking for the workspace of a launch");
}

bool is_refusal(const Status& status) { return !status.ok() && status.code() == Code::unsupported; }

// What a provider answered to a question about `call`: a refusal stays as it is, anything else names op and device.
Status named(const Status& status, const OpCall& call, const DeviceState* device) {
  return status.ok() || is_refusal(status) ? status : vm::launch_error(status, call.op->name, describe(call), device);
}

// Tries the device's own primitive for `call` as it is.
Status try_native(const OpCall& call, Plan* plan) {
  Lowering lowering;
  TENON_RETURN_IF_ERROR(lower(call, plan->outputs, &lowering));
  if (lowering.desc.operand_count > call.inputs.size() + call.outputs.size()) {
    return Status(Code::internal, sentence(call.op->name, ": its primitive has ", lowering.desc.operand_count,
                                           " operands, more than the op has tensors."));
  }
  plan->scalar_count = 0;
  ep_scalar scalars[EP_MAX_SCALARS] = {};
  for (uint32_t slot = 0; slot < EP_MAX_SCALARS && slot < call.scalars.size(); ++slot) {
    plan->scalar_dtypes[slot] = lowering.scalar_dtypes[slot];
    if (lowering.scalar_dtypes[slot] == DType::none) continue;
    scalars[slot] = call.scalars[slot].to_abi(lowering.scalar_dtypes[slot]);
    plan->scalar_count = slot + 1;
  }
  Result<Resolved> answer = resolve_kernel(plan->device, lowering.desc, scalars, plan->scalar_count);
  if (!answer.ok()) return named(answer.status(), call, plan->device);
  const Resolved& resolved = answer.value();
  if (plan->kernel != nullptr) plan->kernel->release();
  plan->kernel = resolved.kernel;
  plan->reusable = !resolved.baked;
  plan->rung = Rung::native;
  plan->operands.clear();
  keep_operands(lowering, resolved, plan);
  return named(add_workspace(plan), call, plan->device);
}

// The device or the machine failed, which says nothing of what the device can do.
bool is_trouble(Code code) {
  return code == Code::internal || code == Code::device_lost || code == Code::out_of_host_memory ||
         code == Code::out_of_device_memory || code == Code::cancelled;
}

void add_reason(Plan* plan, std::string_view rung, std::string_view reason) {
  while (!reason.empty() && reason.back() == '.') reason.remove_suffix(1);
  if (!plan->reason.empty()) plan->reason += "; ";
  plan->reason += sentence(rung, ": ", reason);
}

// "with input 1 made dense", "with inputs 0, 2 made dense"
std::string with_dense(uint32_t inputs) {
  std::string text = std::has_single_bit(inputs) ? "with input " : "with inputs ";
  for (const uint32_t all = inputs; inputs != 0; inputs &= inputs - 1) {
    text += (inputs == all ? "" : ", ") + std::to_string(std::countr_zero(inputs));
  }
  return text + " made dense";
}

// Native as it is, then with strided inputs made contiguous.
Status try_native_rungs(const OpCall& call, Plan* plan) {
  const Status direct = try_native(call, plan);
  if (!is_refusal(direct)) return direct;
  const uint32_t strided = strided_inputs(call);
  if (strided == 0) {
    add_reason(plan, "native", direct.message());
    return direct;
  }
  const DenseInputs dense(call, strided);
  Status status = try_native(dense.call, plan);
  if (status.ok()) {
    plan->dense_inputs = strided;
    add_reason(plan, "taken " + with_dense(strided) + ", refused before", direct.message());
  } else {
    add_reason(plan, "native", direct.message());
    if (status.message() != direct.message()) add_reason(plan, "native " + with_dense(strided), status.message());
  }
  return status;
}

Status nothing_serves(const OpCall& call, const Plan& plan, loader::Fallback lowest) {
  constexpr std::string_view names[] = {"native", "decompose", "compile", "host"};
  return Status(Code::unsupported,
                sentence(describe(call), " cannot run on ", plan.device->opened->spelling, " with fallback ",
                         names[static_cast<size_t>(lowest)], ": ", plan.reason, "."),
                lowest == loader::Fallback::host ? "" : "Allow a lower rung with TENON_FALLBACK=host.");
}

// Chooses among the rungs below native.
Status descend(const OpCall& call, Plan* plan) {
  const loader::Fallback lowest = loader::settings().fallback;
  if (lowest >= loader::Fallback::decompose && call.op->decompose != nullptr) {
    const Status probed = probe_decomposition(call);
    if (probed.ok()) {
      plan->rung = Rung::decomposed;
      return {};
    }
    if (is_trouble(probed.code())) return probed;
    add_reason(plan, "decomposed", probed.message());
  }
  if (lowest >= loader::Fallback::host) {
    const Result<DeviceState*> host = host_device_state();
    if (!host.ok()) return host.status();
    if (host.value() != plan->device) {
      plan->rung = Rung::host;
      return {};
    }
  }
  return nothing_serves(call, *plan, lowest);
}

}  // namespace

Plan::~Plan() {
  if (kernel != nullptr) kernel->release();
}

uint64_t Plan::bytes() const {
  return sizeof(Plan) + key.capacity() * sizeof(uint64_t) + reason.capacity() +
         outputs.capacity() * sizeof(TensorMeta) + operands.capacity() * sizeof(PlanOperand);
}

Result<DeviceState*> device_of(const OpCall& call) {
  const Tensor* first = nullptr;
  size_t first_index = 0;
  const size_t input_count = call.inputs.size();
  for (size_t i = 0; i < input_count + call.outputs.size(); ++i) {
    const Tensor* tensor = i < input_count ? call.inputs[i] : &call.outputs[i - input_count];
    if (tensor == nullptr || !tensor->defined()) continue;
    if (first == nullptr) {
      first = tensor;
      first_index = i;
    } else if (tensor->impl()->device != first->impl()->device) {
      return Status(Code::invalid_argument,
                    sentence("Expected all tensors to be on the same device, but found ", place(*first, first_index),
                             " and ", place(*tensor, i), "."),
                    "Move one of them with to(device).");
    }
  }
  if (first != nullptr) return first->impl()->device;
  if (call.device != nullptr) return call.device;
  return Device::current().state();
}

Status infer_outputs(const OpCall& call, std::vector<TensorMeta>* outputs) {
  outputs->resize(call.outputs.size());
  TENON_RETURN_IF_ERROR(call.op->form == OpForm::elementwise ? infer_elementwise(call, outputs->data())
                                                             : call.op->infer(call, outputs->data()));
  for (size_t i = 0; i < outputs->size(); ++i) {
    TensorMeta& meta = (*outputs)[i];
    if (!call.outputs[i].defined()) {
      meta.strides = contiguous_strides(meta.dims);
      continue;
    }
    TENON_RETURN_IF_ERROR(check_given(call, i, meta));
    meta.strides = call.outputs[i].strides();
  }
  return {};
}

std::string describe(const OpCall& call) {
  std::string text(call.op->name);
  text += '(';
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (i > 0) text += ", ";
    const Tensor* input = call.inputs[i];
    text += input == nullptr ? std::string("-") : sentence(dtype_name(input->dtype()), " ", input->dims());
  }
  return text + ")";
}

Result<Plan*> make_plan(const OpCall& call, DeviceState* device, Reach reach) {
  auto plan = std::make_unique<Plan>();
  plan->op = call.op;
  plan->device = device;
  TENON_RETURN_IF_ERROR(infer_outputs(call, &plan->outputs));
  Status status;
  bool empty = !plan->outputs.empty();
  for (const TensorMeta& meta : plan->outputs) empty = empty && element_count(meta.dims) == 0;
  if (!empty) {
    status = try_native_rungs(call, plan.get());
    if (is_refusal(status) && reach == Reach::setting) status = descend(call, plan.get());
  }
  if (!status.ok()) return status;
  return plan.release();
}

}  // namespace tenon
