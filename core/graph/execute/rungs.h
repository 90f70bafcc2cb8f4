// Rungs: chooses for each step of an executable how it runs, by the fallback ladder, before the first run. Internal to
// core/graph/execute.
#pragma once

#include "core/graph/execute/executable.h"

namespace tenon::graph {

// Prepares each step that computes. A step that its device takes gets its launch (Step::prepared); copies are added for
// inputs that the device needs dense or better aligned. A step on the second rung is replaced by the steps of its
// decomposition. Other steps run by themselves. Results of the program get memory of their own. `packed`: primitives
// may use packed constants. Errors: those of the ladder, with the step's label.
void choose_rungs(Executable* program, bool packed);

// Prepares the launch of `step`, which computes. Sizes are left open, so that executables for other sizes share the
// primitive, unless the device has limits for them. Errors: those of the ladder.
std::shared_ptr<const Prepared> prepare_launch(const Executable& program, const Step& step, bool packed);

}  // namespace tenon::graph
