// Jobs: several tests at the same time, each in its own child process, as in test.h.
#pragma once

#include <functional>
#include <vector>

#include "sdk/conformance/test.h"

namespace tenon::conformance {

// Like run_in_children, but runs `jobs` tests at a time. Still calls done(number, finding) in the order of `tests`.
// Tests that share a process are divided into parts, one process each, and each part ends with the closing tests. The
// first bad finding of a closing test counts.
void run_in_jobs(const std::vector<Test>& tests, double time_limit, int jobs,
                 const std::function<void(size_t, const Finding&)>& done);

}  // namespace tenon::conformance
