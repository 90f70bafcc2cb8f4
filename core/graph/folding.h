// When a result of constants is worth computing once and for all. Internal to core/graph.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::graph {

// A result of `made` elements, computed from `read` elements. It may have up to 65,536, or no more than were read: so a
// shape in a file cannot make loading take much memory.
inline bool worth_folding(int64_t made, int64_t read) { return made <= std::max(int64_t{1} << 16, read); }

}  // namespace tenon::graph
