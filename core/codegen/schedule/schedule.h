// Schedule primitives: each gives a kernel another form that computes the same, or returns an error and leaves the
// kernel unchanged.
#pragma once

#include <cstdint>
#include <vector>

#include "core/codegen/loop/ir.h"
#include "primitives/status/status.h"

namespace tenon::codegen {

// --- The iteration space, for a kernel without loops.

// Replaces `axis` by `with` in every stage. Refused unless their extents are equal and no stage has both.
Status align(Kernel* kernel, Id axis, Id with);

// Merges two axes into one, which runs over `outer` slowly and over `inner` fast, and returns its id. Refused unless
// each stage that has one of them has both, and both as spatial or both as reduce axes.
Result<Id> merge(Kernel* kernel, Id outer, Id inner);

// Adds a new axis of extent 1 to every stage and returns its id. For a kernel whose stages share no axis.
Id add_unit_axis(Kernel* kernel);

// Splits a reduction into two steps: `chunks` partial results over parts of one of its axes, and a reduction of those.
// Returns the id of the first step, a new stage before the other. Refused for a reduction that cannot reduce its own
// results, such as a mean, and unless `chunks` divides the extent of the axis.
Result<Id> reduce_in_two_steps(Kernel* kernel, Id stage, Id axis, int64_t chunks);

// --- Storage

// Makes every reader compute a value stage again. Its step is removed from the loops.
Status inline_stage(Kernel* kernel, Id stage);
// Chooses the storage of a stage. Refused if loops would read its numbers where the storage does not hold them.
Status hold(Kernel* kernel, Id stage, Storage storage);

// --- Loops. A loop is named by its axis and a stage inside of it; if several loops run over the axis, the innermost is
// meant.

// Makes the first loops: an items loop over `items`, which every stage must have, and in it each stage in loops of its
// own, with its numbers in a row.
Status make_loops(Kernel* kernel, Id items);
// Splits the loop of step 1 into a loop of `step` positions at once and a loop of step 1 inside it.
Status tile(Kernel* kernel, Id stage, Id axis, int64_t step);
// Turns the loop of step 1 into a vector loop, with as many positions at once as there are lanes and `unroll` vectors
// in a row.
Status vectorise(Kernel* kernel, Id stage, Id axis, int64_t unroll);
// Exchanges the loop with the one directly inside it. Refused if the loop contains more than that loop.
Status reorder(Kernel* kernel, Id stage, Id axis);
// Moves `stage` into the innermost loops around `other`: before it, or after it if `stage` reads it. The loops of
// `stage` disappear; those of `other` must be over the axes of `stage`, each once.
Status compute_at(Kernel* kernel, Id stage, Id other);

}  // namespace tenon::codegen
