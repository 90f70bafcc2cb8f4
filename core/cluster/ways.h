// Ways: how a call may be computed on a grid of ranks, each with what a rank computes. The signatures are those of the
// interpreter of global tensors (core/global/signatures.h), in the same order. Internal.
#pragma once

#include <cstddef>
#include <vector>

#include "core/cluster/program.h"
#include "core/cluster/topology.h"
#include "core/global/sbp.h"

namespace tenon::cluster {

using global::NdSbp;

struct Way {
  std::vector<NdSbp> inputs, outputs;  // of an absent input broadcast
  double seconds = 0;                  // what the rank with the largest parts computes
};

// For each axis of the grid every signature that fits with those of the axes before. The first one, which is always
// there, is: each rank has all of everything.
std::vector<Way> ways_of(const Program& program, const Program::Call& call, const Dims& grid, const Topology& topology);

// The seconds of a call whose arguments and results are spread so, on the rank with these coordinates.
double seconds_of(const Program& program, const Program::Call& call, const Way& way, const Dims& grid,
                  const Dims& coordinates, const Topology& topology);

}  // namespace tenon::cluster
