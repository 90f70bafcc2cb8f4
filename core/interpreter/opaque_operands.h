// Opaque operands of a call: decides which operands of its primitive are in layouts of the device's own, and makes the
// tensors for its launch. Only for devices with layouts. Internal.
//
// Rules: inputs that are already opaque stay so if the primitive takes them; otherwise the device's preferences are
// followed; if the device refuses the combination, all operands are plain. Outputs that the caller gave are plain.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/device/layout.h"
#include "core/interpreter/prepared.h"
#include "core/ops/op_call.h"

namespace tenon {

// The layout in which the elements of `tensor` can be read without a conversion. Nothing: they are plain, or `tensor`
// is only a part of its storage.
std::optional<Layout> layout_of(const Tensor& tensor);

// Adds layouts to `lowering`, which is plain. False: there are none, and it is unchanged.
bool choose_layouts(const OpCall& call, DeviceState* device, std::span<const TensorMeta> outputs, Lowering* lowering);

// The elements of `input` in the layout that `operand` names; adds the converted bytes to `converted`.
Tensor in_layout(const Tensor& input, const PreparedOperand& operand, uint64_t* converted);
// `tensor` over its plain storage.
Tensor in_plain(const Tensor& tensor, Use use);

// Allocates memory for a result in the layout that `operand` names; the other function makes the result tensor after
// the launch.
Tensor room_in_layout(DeviceState* device, const PreparedOperand& operand);
Tensor result_in_layout(const Tensor& room, const PreparedOperand& operand, const TensorMeta& meta);

}  // namespace tenon
