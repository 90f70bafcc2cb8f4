// Resize: an executable for other sizes, from one of the same graph. Most steps of a program do not see a size that
// changes, as the length of a decoder's cache: their shapes, launches and strides stay. Internal to core/graph/execute.
#pragma once

#include <optional>

#include "core/graph/execute/executable.h"

namespace tenon::graph {

// `like` for the sizes `sizes` of its graph. Nothing: other sizes need other steps, or have an error, which the full
// way finds again.
std::optional<Executable> resize(const Graph& graph, symbolic::Values* sizes, const Executable& like, bool packed);

}  // namespace tenon::graph
