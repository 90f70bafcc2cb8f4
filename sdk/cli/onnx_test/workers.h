// Child processes that run test cases one after the other. A child that crashes or overruns its time costs that case
// alone: it is replaced.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sdk/cli/onnx_test/onnx_case.h"

namespace tenon::cli {

struct WorkerOptions {
  uint32_t jobs = 1;
  double time_limit = 20;  // seconds per case
};

// Runs run(i) for i below `count` in children and calls done(i, result) here, in the order in which they end. The
// caller must not have opened a device: children could not use it.
void run_in_children(size_t count, const WorkerOptions& options, const std::function<CaseResult(size_t)>& run,
                     const std::function<void(size_t, const CaseResult&)>& done);

}  // namespace tenon::cli
