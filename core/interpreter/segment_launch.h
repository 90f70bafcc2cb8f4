// Prepared calls as launches of a segment (core/vm/segment.h). The executor of programs builds segments from them.
// Internal.
#pragma once

#include <span>
#include <string>

#include "core/interpreter/prepared.h"
#include "core/vm/segment.h"

namespace tenon {

// The addresses of the tensors of a call in the runs of a segment.
struct CallAddresses {
  std::span<const vm::SegmentAddress> inputs;   // one per input of the call; `nothing` for an absent one
  std::span<const vm::SegmentAddress> outputs;  // one per output
  vm::SegmentAddress workspace;                 // for prepared.workspace_bytes, if not 0
};

// Ok if `prepared` is exactly one launch. Else unsupported, with the reason: its step must run outside segments, or
// another step must make its inputs dense.
Status fits_segment(const Prepared& prepared);

// Adds the launch of `prepared`, which was made for `call`, under the name `label` ("node 14 (/encoder/MatMul)"). Reads
// only metadata and scalars of `call`. Tensors have the dims and strides given by `call`; dense outputs have those in
// prepared.outputs. Bindings must begin at a multiple of every PreparedOperand::alignment. Errors: those of
// fits_segment; invalid_argument for addresses outside the bindings, or addresses that are not aligned.
Status add_launch(vm::SegmentBuilder* builder, const OpCall& call, const Prepared& prepared,
                  const CallAddresses& addresses, std::string label);

}  // namespace tenon
