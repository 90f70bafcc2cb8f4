// Child processes that run test cases one after the other. If a child crashes or exceeds its time, only that case is
// lost, and a new child replaces it.
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

// Runs run(i) in children for every i below `count`. Calls done(i, result) in this process whenever a case ends. The
// caller must not have opened a device, because the children could not use it.
void run_in_children(size_t count, const WorkerOptions& options, const std::function<CaseResult(size_t)>& run,
                     const std::function<void(size_t, const CaseResult&)>& done);

}  // namespace tenon::cli
