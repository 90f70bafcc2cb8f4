// Decides if a result of constants is computed once, when the graph is optimised. Internal to core/graph.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::graph {

// True if a result of `made` elements, computed from `read` elements, is folded. It may have up to 65,536 elements, or
// as many as were read. So a large shape in a file cannot make loading take much memory.
inline bool worth_folding(int64_t made, int64_t read) { return made <= std::max(int64_t{1} << 16, read); }

}  // namespace tenon::graph
