// Building the steps of an executable. Internal to core/graph/execute.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/interpreter/prepared.h"

namespace tenon::graph {

// True if a step computes elements by a record of a form that devices have primitives for.
bool computes(const Step& step);

// A step that makes a row-major copy of the value `from`, with the precision and label of `like`, and cast unless
// `dtype` is none. Its result is to be set.
Step copy_step(const Executable& program, uint32_t from, const Step& like, DType dtype = DType::none);

// Adds `step` to `program` and gives its results the dtypes, dims and strides that follow from the op's rule, and their
// device. A view whose input has strides that do not allow it gets a row-major copy of the input first.
// Throws: errors of the rule.
void add_step(Executable* program, Step step);

// prepare() for the results `outputs` of `graph`.
Executable prepare_outputs(const Graph& graph, std::span<const ValueId> outputs, symbolic::Values* sizes,
                           const PrepareOptions& options);

// The strides of the results of a step with a kernel whose inputs have channels last. None: the kernel wants row-major
// inputs.
std::optional<Dims> channels_last_of(const Executable& program, const Step& step);

// A new value of `program`.
uint32_t add_value(Executable* program, Slot slot);

}  // namespace tenon::graph
