// The fake with every primitive of primitives/reference, with static dims.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/dtype.h"
#include "primitives/reference/reference.h"
#include "primitives/table/table.h"
#include "sdk/provider/negotiate.h"
#include "tests/fakes/async/device.h"
#include "tests/fakes/async/layouts.h"

namespace tenon::fakes {
namespace {

std::string why_not(const ep_primitive_desc& desc) {
  if (desc.kind >= kMix) return fmt::format("unknown kind {}.", desc.kind);
  if (descriptor::has_any(desc)) return "the reference wants static dims.";
  const Status status = descriptor::check_descriptor(desc);
  return status.ok() ? why_not_layouts(desc) : status.message();
}

ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out, ep_error** error) {
  if (const std::string reason = why_not(*desc); !reason.empty()) {
    return fail(device->host, error, EP_STATUS_UNSUPPORTED, reason);
  }
  ep_support_info info{};
  info.implementation = {"reference", 9};
  wish_layouts(*desc, info.layouts);
  provider::fill(out, info);
  return EP_STATUS_OK;
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out,
                           ep_primitive_info* out_info, ep_error** error) {
  if (const std::string reason = why_not(*desc); !reason.empty()) {
    return fail(device->host, error, EP_STATUS_UNSUPPORTED, reason);
  }
  if (const ep_status status = compile(device, static_cast<uint64_t>(desc->kind), error); status != EP_STATUS_OK)
    return status;
  async_control().created_primitives.fetch_add(1);
  auto* primitive = new ep_primitive;
  primitive->device = device;
  primitive->desc = *desc;
  ep_primitive_info info{};
  info.implementation = {"reference", 9};
  info.host_bytes = sizeof *primitive;
  for (uint32_t i = 0; i < desc->operand_count && async_control().packs; ++i) {
    if ((desc->operands[i].flags & EP_OPERAND_FLAG_CONSTANT) == 0) continue;
    primitive->packed = info.pack_operand = i + 1;
    info.pack_bytes = operand_bytes(desc->operands[i]);
    info.pack_layout = async_control().packs_alone ? 0 : info.pack_bytes;
  }
  provider::fill(out_info, info);
  *out = primitive;
  return EP_STATUS_OK;
}

ep_status primitive_launch(ep_primitive* primitive, ep_stream* stream, const ep_launch* launch, ep_fault*,
                           ep_error** error) {
  AsyncControl& control = async_control();
  control.launches.fetch_add(1, std::memory_order_relaxed);
  begin_work(stream);
  if (is_lost()) return lost(stream->device, error);
  if (due(control.fail_launch, control.failed_launches)) {
    return fail(stream->device->host, error, EP_STATUS_INTERNAL, "this launch was told to fail.");
  }
  Command command;
  command.kind = Command::reference;
  command.primitive = primitive;
  command.tag = launch->tag;
  command.operands = std::make_shared<std::vector<char*>>(launch->operand_count);
  command.all_scalars =
      std::make_shared<std::vector<ep_scalar>>(launch->scalars, launch->scalars + launch->scalar_count);
  std::vector<Access> inputs, outputs;
  for (uint32_t i = 0; i < launch->operand_count; ++i) {
    if (launch->operands[i].memory == nullptr) continue;
    (*command.operands)[i] = address(launch->operands[i]);
    const bool output = table::is_output(primitive->desc.kind, primitive->desc.operands[i].role);
    (output ? outputs : inputs).push_back({launch->operands[i], operand_bytes(primitive->desc.operands[i]), output});
    check_home(primitive->desc.operands[i], launch->operands[i].memory);
  }
  inputs.insert(inputs.end(), outputs.begin(), outputs.end());
  check(stream, inputs.data(), inputs.size());
  stream->push(std::move(command));
  return EP_STATUS_OK;
}

char inverted(char byte) { return static_cast<char>(~byte); }

// Packing inverts every bit.
ep_status primitive_pack(ep_primitive* primitive, ep_stream* stream, ep_buffer dst, ep_buffer src, ep_error** error) {
  AsyncControl& control = async_control();
  if (is_lost()) return lost(stream->device, error);
  if (due(control.fail_pack, control.failed_packs)) {
    return fail(stream->device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "this packing was told to fail.");
  }
  control.packed.fetch_add(1);
  Command command;
  command.kind = Command::pack;
  command.bytes = operand_bytes(primitive->desc.operands[primitive->packed - 1]);
  command.pointers = {address(dst), address(src)};
  const Access accesses[] = {{src, command.bytes, false}, {dst, command.bytes, true}};
  check(stream, accesses, 2);
  stream->push(std::move(command));
  return EP_STATUS_OK;
}

}  // namespace

void run_pack(const Command& command) {
  std::transform(command.pointers[1], command.pointers[1] + command.bytes, command.pointers[0], inverted);
}

void run_reference(const Command& command, std::vector<ep_fault>* faults) {
  ep_fault fault{};
  PlainRun run(command.primitive->desc, command.operands->data());
  std::vector<void*> operands(run.operands.begin(), run.operands.end());
  std::vector<char> constant;
  if (const uint32_t packed = command.primitive->packed; packed != 0) {
    constant.resize(operand_bytes(command.primitive->desc.operands[packed - 1]));
    const char* from = run.operands[packed - 1];
    std::transform(from, from + constant.size(), constant.begin(), inverted);
    operands[packed - 1] = constant.data();
    async_control().packed_reads.fetch_add(1, std::memory_order_relaxed);
  }
  const std::vector<ep_scalar>& scalars = *command.all_scalars;
  const Status status =
      reference::run(run.desc, operands.data(), scalars.data(), static_cast<uint32_t>(scalars.size()), &fault);
  run.finish();
  if (status.code() != Code::fault) return;
  fault.tag = command.tag;
  faults->push_back(fault);
}

void fill_reference(ep_device_ops* ops) {
  ops->primitive_support = primitive_support;
  ops->primitive_create = primitive_create;
  ops->primitive_launch = primitive_launch;
  if (async_control().packs) ops->primitive_pack = primitive_pack;
}

}  // namespace tenon::fakes
