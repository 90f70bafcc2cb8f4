// Measure: runs a plan on the ranks of this launch, as global tensors, and counts.
#pragma once

#include <cstdint>

#include "core/cluster/plan.h"
#include "core/cluster/program.h"
#include "core/cluster/topology.h"
#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon::cluster {

struct Measured {
  TensorList results;      // global tensors
  uint64_t exchanges = 0;  // of this rank in one run
  uint64_t bytes = 0;      // that this rank gave to others in one run
  double seconds = 0;      // the median of the runs, of the slowest rank
};

// Runs `plan`, of as many ranks as the launch has, `runs` times after one that does not count. Every rank calls it with
// the same arguments; inputs are local tensors, the same on every rank, one per input of the program. Each run spreads
// nothing: inputs lie as the plan keeps them.
// Errors: those of the ops and of exchanges; invalid_argument (another number of ranks).
TENON_API Measured run_plan(const Program& program, const Plan& plan, const TensorList& inputs, int32_t runs = 1);

// Inputs with the elements that the graph had for them, and others of small whole numbers, the same on every rank.
TENON_API TensorList sample_inputs(const Program& program, uint64_t seed);

// The machine of this launch as a topology of one level, each figure measured: a product of matrices, a copy, a small
// op, and sums over all ranks of few and of many elements. Every rank calls it; all get the same.
TENON_API Topology measured_topology();

// Notes in `topology`, a measured one, how long each kind of op of the program takes here beside what the topology
// says: in runs of `plan` on `inputs`, as run_plan takes them, that wait for every call.
TENON_API void measure_ops(const Program& program, const Plan& plan, const TensorList& inputs, Topology* topology);

}  // namespace tenon::cluster
