// TENON_CHECK=compile: runs launch their kernels, compute the same ops one by one from the same inputs, and compare.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device/export.h"
#include "core/graph/execute/executable.h"

namespace tenon::graph {

// What was compared of the kernels of one set of ops, since the program began. `bound` is the difference that other
// orders of addition and other roundings allow: it grows with the length of the kernel's reductions.
struct KernelCheck {
  std::string kernel;
  std::string ops;
  std::string where;  // the launch with the worst difference: its label
  uint64_t launches = 0;
  double worst = 0;  // as a multiple of the bound; infinite where only one of two numbers is finite
  double difference = 0;
  double bound = 0;
};

// Those that ran, the worst first. Threads: any.
TENON_API std::vector<KernelCheck> kernel_checks();

// Whether runs check their kernels.
bool checks_kernels();

// Runs `program` on row-major inputs without a check. Internal to core/graph/execute.
TensorList run_by_schedule(const Executable& program, TensorList inputs);

// The results of the kernel of `step`, one of `program`, after they were compared with those of its ops. A difference
// beyond the bound is a warning, once for these ops (topic compile). Internal to core/graph/execute.
TensorList run_checked(const Executable& program, const Step& step, std::span<const Tensor* const> inputs);

}  // namespace tenon::graph
