// Primitives and launches. stream.cpp runs the launches.
#include <fmt/core.h>

#include <utility>

#include "sdk/provider/implementation.h"
#include "sdk/provider/negotiate.h"
#include "tests/fakes/async/device.h"
#include "tests/fakes/async/layouts.h"

namespace tenon::fakes {
namespace {

bool has_dtype(const ep_primitive_desc* desc, int32_t first, int32_t second) {
  for (uint32_t i = 0; i < desc->operand_count; ++i) {
    const ep_operand_desc& operand = desc->operands[i];
    if ((operand.dtype != first && operand.dtype != second) || operand.dtype != desc->operands[0].dtype) return false;
    if ((operand.flags & EP_OPERAND_FLAG_SCALAR) != 0) return false;
    for (int32_t axis = 0; axis < operand.rank; ++axis) {
      if (operand.dims[axis] == EP_ANY || operand.strides[axis] == EP_ANY) return false;
    }
  }
  return true;
}

// Gathers f32 by indices of i32 or i64.
bool is_gather(const ep_primitive_desc* desc) {
  if (desc->operand_count != 3) return false;
  const int32_t index = desc->operands[2].dtype;
  ep_primitive_desc values = *desc;
  values.operands[2].dtype = EP_DTYPE_f32;
  const int32_t mode = desc->attributes.gather.mode;
  return (index == EP_DTYPE_i32 || index == EP_DTYPE_i64) && has_dtype(&values, EP_DTYPE_f32, EP_DTYPE_f32) &&
         (mode == EP_GATHER_SLICES || mode == EP_GATHER_ELEMENTS);
}

std::string why_not(const ep_primitive_desc* given) {
  const ep_primitive_desc plain = plain_primitive(*given);
  const ep_primitive_desc* desc = &plain;
  if (std::string reason = why_not_layouts(*given); !reason.empty()) return reason;
  if (const auto unknown = provider::unknown_parts(*desc)) return unknown.text();
  if (desc->epilogue_count != 0 || desc->baked_scalars != 0 || desc->accumulate_dtype != 0) {
    return "the asynchronous fake takes no epilogues, baked scalars and accumulation dtypes.";
  }
  const uint32_t operands = desc->operand_count;
  const int32_t third = desc->kind == EP_PRIMITIVE_gather ? EP_ROLE_INDICES : EP_ROLE_SRC_B;
  const int32_t roles[] = {EP_ROLE_DST, EP_ROLE_SRC, third};
  for (uint32_t i = 0; i < operands && i < 3; ++i) {
    if (desc->operands[i].role != roles[i]) return fmt::format("unknown role {}.", desc->operands[i].role);
  }
  switch (desc->kind) {
    case EP_PRIMITIVE_copy:
      if (operands == 2 && has_dtype(desc, EP_DTYPE_f32, EP_DTYPE_i32)) return {};
      return "the asynchronous fake copies f32 or i32 to the same type.";
    case EP_PRIMITIVE_unary:
      if (operands == 2 && desc->attributes.unary.op == EP_UNARY_relu && has_dtype(desc, EP_DTYPE_f32, EP_DTYPE_f32)) {
        return {};
      }
      return "relu on f32 is the only unary function of the asynchronous fake.";
    case EP_PRIMITIVE_matmul:
      if (operands == 3 && has_dtype(desc, EP_DTYPE_f32, EP_DTYPE_f32)) return {};
      return "the asynchronous fake multiplies f32 matrices without bias.";
    case EP_PRIMITIVE_gather: return is_gather(desc) ? "" : "the asynchronous fake gathers f32 by i32 or i64.";
    case kMix:
      if (operands == 3 && has_dtype(desc, EP_DTYPE_i32, EP_DTYPE_i32)) return {};
      return "the kind 0x10000 takes three i32 operands.";
    default: return fmt::format("unknown kind {}.", desc->kind);
  }
}

ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out, ep_error** error) {
  if (const std::string reason = why_not(desc); !reason.empty()) {
    return fail(device->host, error, EP_STATUS_UNSUPPORTED, reason);
  }
  ep_support_info info{};
  info.implementation = {"plain", 5};
  wish_layouts(*desc, info.layouts);
  provider::fill(out, info);
  return EP_STATUS_OK;
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out,
                           ep_primitive_info* out_info, ep_error** error) {
  if (const std::string reason = why_not(desc); !reason.empty()) {
    return fail(device->host, error, EP_STATUS_UNSUPPORTED, reason);
  }
  if (const ep_status status = compile(device, static_cast<uint64_t>(desc->kind), error); status != EP_STATUS_OK)
    return status;
  async_control().created_primitives.fetch_add(1);
  auto* primitive = new ep_primitive;
  primitive->device = device;
  primitive->desc = *desc;
  ep_primitive_info info{};
  info.implementation = {"plain", 5};
  info.host_bytes = sizeof *primitive;
  provider::fill(out_info, info);
  *out = primitive;
  return EP_STATUS_OK;
}

void primitive_destroy(ep_device*, ep_primitive* primitive) {
  if (primitive != nullptr && primitive->lists != 0) {
    async_control().violate("a primitive that a command list launches is destroyed");
  }
  delete primitive;
}

ep_status primitive_launch(ep_primitive* primitive, ep_stream* stream, const ep_launch* launch, ep_fault*,
                           ep_error** error) {
  AsyncControl& control = async_control();
  control.launches.fetch_add(1, std::memory_order_relaxed);
  begin_work(stream);
  const ep_host* host = stream->device->host;
  if (is_lost()) return lost(stream->device, error);
  if (due(control.fail_launch, control.failed_launches))
    return fail(host, error, EP_STATUS_INTERNAL, "this launch was told to fail.");
  Command command;
  command.primitive = primitive;
  command.tag = launch->tag;
  for (uint32_t i = 0; i < launch->scalar_count && i < command.scalars.size(); ++i)
    command.scalars[i] = launch->scalars[i];
  if (primitive->desc.kind == kMix && launch->scalar_count > 1) {
    const int64_t how = launch->scalars[1].value.i64;
    if (how == kMixRefused) return fail(host, error, EP_STATUS_INTERNAL, "the program asked for a refusal.");
    command.faults = how == kMixFaults || how == kMixOverflows;
    command.overflows = how == kMixOverflows;
    command.soils = how == kMixSoils;
  }
  std::array<Access, 5> accesses;
  size_t count = launch->operand_count;
  for (uint32_t i = 0; i < launch->operand_count; ++i) {
    const uint32_t at = (i + 1) % launch->operand_count;  // inputs first
    accesses[i] = {launch->operands[at], operand_bytes(primitive->desc.operands[at]), at == 0};
    check_home(primitive->desc.operands[at], launch->operands[at].memory);
    command.pointers[at] = address(launch->operands[at]);
  }
  if (launch->workspace.memory != nullptr) {
    command.workspace = address(launch->workspace);
    accesses[count++] = {launch->workspace, operand_bytes(plain_operand(primitive->desc.operands[0])), true};
  }
  if (launch->scratch.memory != nullptr) {
    command.scratch = address(launch->scratch);
    accesses[count++] = {launch->scratch, 4, true};
  }
  check(stream, accesses.data(), count);
  stream->push(std::move(command));
  return EP_STATUS_OK;
}

}  // namespace

void fill_primitive(ep_device_ops* ops) {
  ops->primitive_support = primitive_support;
  ops->primitive_create = primitive_create;
  ops->primitive_destroy = primitive_destroy;
  ops->primitive_launch = primitive_launch;
}

}  // namespace tenon::fakes
