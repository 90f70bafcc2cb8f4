// Prepared calls as launches of a segment (core/vm/segment.h): what the executor of programs builds segments from.
// Internal.
#pragma once

#include <span>
#include <string>

#include "core/interpreter/prepared.h"
#include "core/vm/segment.h"

namespace tenon {

// Where the tensors of a call lie in the runs of a segment.
struct CallAddresses {
  std::span<const vm::SegmentAddress> inputs;   // one per input of the call; of an absent one nothing
  std::span<const vm::SegmentAddress> outputs;  // one per output
  vm::SegmentAddress workspace;                 // of prepared.workspace_bytes, if there are any
};

// Ok if `prepared` is one launch and nothing else. Else unsupported, with the reason: its step runs outside of
// segments, or another step copies what it wants dense first.
Status fits_segment(const Prepared& prepared);

// Adds the launch of `prepared`, which was made for `call`, under the name `label` ("node 14 (/encoder/MatMul)").
// Reads metadata and scalars of `call` only. Tensors have the dims and strides that `call` gives them, dense outputs
// those of prepared.outputs. Bindings begin at a multiple of every PreparedOperand::alignment.
// Errors: those of fits_segment; invalid_argument for addresses that no run has, or that are not aligned.
Status add_launch(vm::SegmentBuilder* builder, const OpCall& call, const Prepared& prepared,
                  const CallAddresses& addresses, std::string label);

}  // namespace tenon
