// Rungs: how each step of an executable runs, by the fallback ladder, worked out before the first run. Internal to
// core/graph/execute.
#pragma once

#include "core/graph/execute/executable.h"

namespace tenon::graph {

// Prepares each step that computes. A step that its device takes gets its launch (Step::prepared); inputs that the
// device wants dense or better aligned are copied by steps of their own. The steps of its decomposition take the place
// of a step on the second rung. Other steps run by themselves. Results of the program get memory of their own.
// Errors: those of the ladder, with the step's label.
// `packed`: kernels may take constants packed.
void choose_rungs(Executable* program, bool packed);

// Asks for the launch of `step`, which computes; with open sizes, so that executables for other sizes share the kernel,
// unless its shapes have limits. Errors: those of the ladder.
std::shared_ptr<const Prepared> prepare_launch(const Executable& program, const Step& step, bool packed);

}  // namespace tenon::graph
