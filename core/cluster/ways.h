// Ways: the possible ways to compute a call on a grid of ranks, with the work of a rank for each. They are the
// signatures of the interpreter of global tensors (core/global/signatures.h), in the same order. Internal.
#pragma once

#include <cstddef>
#include <vector>

#include "core/cluster/program.h"
#include "core/cluster/topology.h"
#include "core/global/sbp.h"

namespace tenon::cluster {

using global::NdSbp;

struct Way {
  std::vector<NdSbp> inputs, outputs;  // broadcast for an absent input
  double seconds = 0;                  // computing time on the rank with the largest parts
};

// Each combination of one signature per axis of the grid in which each signature fits those of the axes before it. The
// first one always exists: each rank has all of every tensor.
std::vector<Way> ways_of(const Program& program, const Program::Call& call, const Dims& grid, const Topology& topology);

// The computing time of a call with these layouts of arguments and results, on the rank with these coordinates.
double seconds_of(const Program& program, const Program::Call& call, const Way& way, const Dims& grid,
                  const Dims& coordinates, const Topology& topology);

}  // namespace tenon::cluster
