// Lowers a call: describes the op's record as one descriptor with launch scalars, for a separate launch or a node of a
// graph. Internal.
#pragma once

#include <cstdint>
#include <span>

#include "core/ops/op_call.h"
#include "core/primitive/lowering.h"
#include "core/vm/call_note.h"

namespace tenon {

// The results of lowering a call besides the descriptor.
struct LoweredCall {
  Lowering lowering;
  ep_scalar scalars[EP_MAX_SCALARS] = {};  // by slot; zero where the slot is unused
  uint32_t scalar_count = 0;
  uint64_t operand_inputs = vm::kNoInputs;  // as in vm::CallNote
};

// Describes the one primitive that computes `call`, an element-wise or kernel op, whose outputs have the metadata
// `outputs`. Reads only metadata and the values of scalars. Errors: unsupported or invalid_argument, from the op's
// rule.
Status lower_call(const OpCall& call, std::span<const TensorMeta> outputs, LoweredCall* lowered);

}  // namespace tenon
