// Resize: makes an executable for other sizes from one of the same graph. Most steps of a program do not depend on a
// size that changes, such as the length of a decoder's cache; their shapes, launches and strides stay. Internal to
// core/graph/execute.
#pragma once

#include <optional>

#include "core/graph/execute/executable.h"

namespace tenon::graph {

// `like` for other sizes of its graph. Returns nothing if the sizes need other steps or cause an error; the full
// preparation then reports the error.
std::optional<Executable> resize(const Graph& graph, symbolic::Values* sizes, const Executable& like, bool packed);

}  // namespace tenon::graph
