// Measure: runs a plan on the ranks of this launch, with global tensors, and counts its exchanges, bytes and time.
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
  uint64_t exchanges = 0;  // exchanges of this rank in one run
  uint64_t bytes = 0;      // bytes that this rank sent in one run
  double seconds = 0;      // median over the runs, on the slowest rank
};

// Runs `plan`, for as many ranks as the launch has, `runs` times after one warm-up run. Every rank must call it with
// the same arguments. Inputs are local tensors, the same on every rank, one per input of the program. They are spread
// before the runs, in the layouts of the plan. Errors: those of the ops and of exchanges; invalid_argument (another
// number of ranks).
TENON_API Measured run_plan(const Program& program, const Plan& plan, const TensorList& inputs, int32_t runs = 1);

// Sample inputs: the elements that the graph had for them, else small whole numbers; the same on every rank.
TENON_API TensorList sample_inputs(const Program& program, uint64_t seed);

// The machine of this launch as a topology of one level. It measures a matrix product, a copy, a small op, and sums
// over all ranks of few and of many elements. Every rank must call it; all get the same result.
TENON_API Topology measured_topology();

// Stores in `topology`, a measured one, how long each kind of op takes relative to the model. It runs `plan` on
// `inputs` like run_plan, but waits after every call.
TENON_API void measure_ops(const Program& program, const Plan& plan, const TensorList& inputs, Topology* topology);

}  // namespace tenon::cluster
