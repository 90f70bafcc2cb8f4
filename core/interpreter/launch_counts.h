// LaunchCounts: the number of runs of a list of launches, for the execution report. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/interpreter/execution_report.h"

namespace tenon {

// Each run of a prepared program launches the same list, so one number counts it. Threads: every function is
// thread-safe.
class LaunchCounts {
 public:
  explicit LaunchCounts(std::vector<ExecutionEntry> launches);
  // Adds the counts to the report.
  ~LaunchCounts();
  LaunchCounts(const LaunchCounts&) = delete;
  LaunchCounts& operator=(const LaunchCounts&) = delete;

  void ran() { runs_.fetch_add(1, std::memory_order_relaxed); }
  const std::vector<ExecutionEntry>& launches() const { return launches_; }
  // Adds the launches of all runs so far.
  void report(std::vector<ExecutionEntry>* entries) const;

 private:
  const std::vector<ExecutionEntry> launches_;
  std::atomic<uint64_t> runs_{0};
};

}  // namespace tenon
