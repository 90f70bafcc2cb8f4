// Opaque operands of a call: which operands of its primitive lie in layouts of the device's own, and the tensors that
// its launch gets in their place. Only for devices with layouts. Internal.
//
// The rule: what lies opaque stays so where the primitive takes it; beyond that the device's wishes are followed; a
// mixture that the device refuses is asked for plain. Outputs that the caller gave are plain.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/device/layout.h"
#include "core/interpreter/prepared.h"
#include "core/ops/op_call.h"

namespace tenon {

// The layout in which the elements of `tensor` are at hand. None: they are plain, or `tensor` is a part of its storage.
std::optional<Layout> layout_of(const Tensor& tensor);

// Writes layouts into `lowering`, which is plain. False: there are none, and it is unchanged.
bool choose_layouts(const OpCall& call, DeviceState* device, std::span<const TensorMeta> outputs, Lowering* lowering);

// The elements of `input` in the layout that `operand` names; `converted` is raised by the bytes that were converted.
Tensor in_layout(const Tensor& input, const PreparedOperand& operand, uint64_t* converted);
// `tensor` over its plain storage.
Tensor in_plain(const Tensor& tensor, Use use);

// Memory for a result in the layout that `operand` names, and that result, once a launch has written it.
Tensor room_in_layout(DeviceState* device, const PreparedOperand& operand);
Tensor result_in_layout(const Tensor& room, const PreparedOperand& operand, const TensorMeta& meta);

}  // namespace tenon
