// Cutting what a device claims of a program into islands: parts that no path leaves and enters again, so that each part
// can run as one piece of work.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/export.h"

namespace tenon::graph {

// preds[i]: the nodes that come before node i; all are smaller than i. claims[i]: 0, or the number of the island that
// node i may be part of. Gives the parts, each of nodes of one number, in ascending order; together they hold every
// node with a number, and a program in which each part is one node has no circle.
TENON_API std::vector<std::vector<uint32_t>> cut_islands(std::span<const std::vector<uint32_t>> preds,
                                                         std::span<const uint32_t> claims);

}  // namespace tenon::graph
