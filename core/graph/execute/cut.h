// Cuts the nodes that a device takes into islands: parts that no path leaves and enters again, so that each part can
// run as one piece of work.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/export.h"

namespace tenon::graph {

// preds[i]: the nodes before node i; all have smaller numbers. claims[i]: 0, or the number of the island that node i
// may be part of. Returns the islands, each with its nodes in ascending order. All nodes of an island have the same
// claim, and every node with a claim is in one island. If each island is replaced by one node, the program has no
// cycle.
TENON_API std::vector<std::vector<uint32_t>> cut_islands(std::span<const std::vector<uint32_t>> preds,
                                                         std::span<const uint32_t> claims);

}  // namespace tenon::graph
