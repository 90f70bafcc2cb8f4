// TENON_CHECK=compile: each run launches its fused kernels, computes the same ops one by one from the same inputs, and
// compares the results.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device/export.h"
#include "core/graph/execute/executable.h"

namespace tenon::graph {

// The comparisons of all kernels of one set of ops since the process began. `bound` is the difference that another
// order of addition and other roundings can cause. It grows with the length of the kernel's reductions.
struct KernelCheck {
  std::string kernel;
  std::string ops;
  std::string where;  // label of the launch with the largest difference
  uint64_t launches = 0;
  double worst = 0;  // largest difference as a multiple of the bound; infinite if only one of two numbers is finite
  double difference = 0;
  double bound = 0;
};

// The checked kernels, the largest difference first. Threads: any.
TENON_API std::vector<KernelCheck> kernel_checks();

// True if runs check their kernels.
bool checks_kernels();

// Runs `program` on row-major inputs without checks. Internal to core/graph/execute.
TensorList run_by_schedule(const Executable& program, TensorList inputs);

// The results of the kernel of `step`, a step of `program`, after a comparison with its ops. A difference beyond the
// bound is logged as a warning, once per set of ops (topic compile). Internal to core/graph/execute.
TensorList run_checked(const Executable& program, const Step& step, std::span<const Tensor* const> inputs);

}  // namespace tenon::graph
