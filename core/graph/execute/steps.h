// Builds the steps of an executable. Internal to core/graph/execute.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/interpreter/prepared.h"

namespace tenon::graph {

// True if the step computes elements with an op that devices can have primitives for.
bool computes(const Step& step);

// A step that makes a row-major copy of the value `from`, with the precision and label of `like`, and casts it unless
// `dtype` is none. The caller sets its result.
Step copy_step(const Executable& program, uint32_t from, const Step& like, DType dtype = DType::none);

// Adds `step` to `program` and sets dtype, dims, strides and device of its results by the op's rule. A view that the
// strides of its input do not allow gets a row-major copy of the input first. Throws: errors of the rule.
void add_step(Executable* program, Step step);

// Like prepare(), for the results `outputs` of `graph`.
Executable prepare_outputs(const Graph& graph, std::span<const ValueId> outputs, symbolic::Values* sizes,
                           const PrepareOptions& options);

// The strides of the results of a kernel step whose inputs are channels-last. Nothing if the kernel needs row-major
// inputs.
std::optional<Dims> channels_last_of(const Executable& program, const Step& step);

// Adds a new value to `program` and returns its id.
uint32_t add_value(Executable* program, Slot slot);

}  // namespace tenon::graph
