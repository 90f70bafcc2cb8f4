// Lowering a call: the op's record as one descriptor with launch scalars, for a launch of its own or as the node of a
// graph. Internal.
#pragma once

#include <cstdint>
#include <span>

#include "core/ops/op_call.h"
#include "core/primitive/lowering.h"
#include "core/vm/call_note.h"

namespace tenon {

// What lowering a call gives beside the descriptor.
struct LoweredCall {
  Lowering lowering;
  ep_scalar scalars[EP_MAX_SCALARS] = {};  // by slot; zero where the slot is unused
  uint32_t scalar_count = 0;
  uint64_t operand_inputs = vm::kNoInputs;  // as in vm::CallNote
};

// Describes the one primitive that computes `call`, an elementwise or kernel op, whose outputs have `outputs`. Reads
// metadata only, and the values of scalars. Errors: unsupported or invalid_argument, as the op's rule says.
Status lower_call(const OpCall& call, std::span<const TensorMeta> outputs, LoweredCall* lowered);

}  // namespace tenon
