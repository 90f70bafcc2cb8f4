// Schedule primitives: each gives a kernel another form that computes the same, or refuses with a sentence and leaves
// the kernel as it was.
#pragma once

#include <cstdint>
#include <vector>

#include "core/codegen/loop/ir.h"
#include "primitives/status/status.h"

namespace tenon::codegen {

// --- The iteration space: of a kernel without loops.

// `axis` becomes `with` in every stage. Refused, unless their extents are equal and no stage has both.
Status align(Kernel* kernel, Id axis, Id with);

// Two axes become one, which runs over `outer` slowly and over `inner` fast; its id. Refused, unless each stage that
// has one of them has both, and both as spatial or both as reduce axes.
Result<Id> merge(Kernel* kernel, Id outer, Id inner);

// A new axis of extent 1 in every stage: its id. For a kernel whose stages share no axis.
Id add_unit_axis(Kernel* kernel);

// A reduction in two steps: `chunks` partial results over parts of one of its axes, and a reduction of those. The id of
// the first step, a new stage in front of it. Refused for a reduction that does not combine with itself, such as a
// mean, and unless `chunks` divides the extent of the axis.
Result<Id> reduce_in_two_steps(Kernel* kernel, Id stage, Id axis, int64_t chunks);

// --- Storage

// A value stage is computed again wherever it is read. Its step leaves the loops.
Status inline_stage(Kernel* kernel, Id stage);
// Where a stage's numbers stay. Refused where the loops would read them outside of it.
Status hold(Kernel* kernel, Id stage, Storage storage);

// --- Loops: a loop is named by its axis and a stage that it is around; of several on the axis the innermost is meant.

// The first loops: items over `items`, which every stage has, and in it each stage in loops of its own, its numbers in
// a row.
Status make_loops(Kernel* kernel, Id items);
// The loop of step 1 becomes one of `step` positions at once, around a loop of step 1 over those.
Status tile(Kernel* kernel, Id stage, Id axis, int64_t step);
// The loop of step 1 takes as many positions at once as there are lanes, `unroll` vectors in a row.
Status vectorise(Kernel* kernel, Id stage, Id axis, int64_t unroll);
// The loop moves inside of the next one, whose body is its place then. Refused where it is around more than that loop.
Status reorder(Kernel* kernel, Id stage, Id axis);
// `stage` moves into the innermost loops around `other`, in front of it or, if it reads it, behind it. Its own loops
// go; those of `other` must be over its axes, each once.
Status compute_at(Kernel* kernel, Id stage, Id other);

}  // namespace tenon::codegen
