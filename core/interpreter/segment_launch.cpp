#include "core/interpreter/segment_launch.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/interpreter/inference.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

Status no(const Prepared& prepared, std::string_view why) {
  return Status(Code::unsupported, fmt::format("{} cannot be part of a segment: {}.", prepared.op->name, why));
}

vm::SegmentAddress address_of_operand(const PreparedOperand& operand, const CallAddresses& addresses) {
  if (operand.output >= 0) return addresses.outputs[static_cast<size_t>(operand.output)];
  if (operand.input >= 0) return addresses.inputs[static_cast<size_t>(operand.input)];
  return {};
}

}  // namespace

Status fits_segment(const Prepared& prepared) {
  if (prepared.rung != Rung::native) return no(prepared, "the device has no primitive for it");
  if (prepared.primitive == nullptr) return no(prepared, "it makes nothing");
  if (prepared.dense_inputs != 0) return no(prepared, "the device wants inputs dense");
  const bool opaque = std::any_of(prepared.operands.begin(), prepared.operands.end(),
                                  [](const PreparedOperand& operand) { return operand.token != 0; });
  return opaque ? no(prepared, "it takes operands in a layout of the device's own") : Status();
}

Status add_launch(vm::SegmentBuilder* builder, const OpCall& call, const Prepared& prepared,
                  const CallAddresses& addresses, std::string label) {
  TENON_RETURN_IF_ERROR(fits_segment(prepared));
  std::array<vm::SegmentAddress, EP_MAX_OPERANDS> operands;
  std::array<ep_shape, EP_MAX_OPERANDS> shapes;
  std::array<ep_scalar, EP_MAX_SCALARS> scalars{};
  for (size_t i = 0; i < prepared.operands.size(); ++i) {
    const PreparedOperand& operand = prepared.operands[i];
    operands[i] = address_of_operand(operand, addresses);
    shapes[i] = {operand.dims.data(), operand.strides.data(), operand.dims.rank(), 0};
    if (operand.alignment > 1 && operands[i].offset % static_cast<uint64_t>(operand.alignment) != 0) {
      return Status(Subject{call.op->name}, Code::invalid_argument,
                    fmt::format("operand {} lies at {}, but {} needs a multiple of {} bytes.", i, operands[i].offset,
                                prepared.device->opened->spelling, operand.alignment));
    }
  }
  for (uint32_t slot = 0; slot < prepared.scalar_count; ++slot) {
    const DType dtype = prepared.scalar_dtypes[slot];
    if (dtype != DType::none) scalars[slot] = call.scalars[slot].to_abi(dtype);
  }
  NodeName name{call.op->named, prepared.operand_inputs, {}, std::move(label)};
  note_call(&call, &name.inputs);
  vm::SegmentLaunch launch;
  launch.primitive = prepared.primitive;
  launch.operands = {operands.data(), prepared.operands.size()};
  launch.shapes = prepared.primitive->dynamic ? shapes.data() : nullptr;
  launch.scalars = {scalars.data(), prepared.scalar_count};
  if (prepared.workspace_bytes != 0) launch.workspace = addresses.workspace;
  launch.name = &name;
  return builder->add(launch);
}

}  // namespace tenon
