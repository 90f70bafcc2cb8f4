// Unreported: the failures of one device that have not been reported to a caller yet, in the order of submission. A
// failure that several instructions share (the loss of their device) is one entry.
//
// Threads: not thread-safe. The caller of every function holds Engine::submission.
#pragma once

#include <cstdint>
#include <vector>

#include "primitives/status/status.h"

namespace tenon::vm {

class Unreported {
 public:
  // Notes that the instruction with number `sequence` among all submissions of the process failed with `status`.
  void add(const Status& status, uint64_t sequence);
  // Notes that a caller got `status` when the process had submitted `sequence` instructions. If an instruction
  // submitted earlier later fails with the same failure, it adds nothing: the time of its failure is not deterministic,
  // but the reports must be.
  void told(const Status& status, uint64_t sequence);

  bool empty() const { return entries_.empty(); }
  // The number of the earliest submission that failed. There must be an entry.
  uint64_t first_sequence() const { return entries_.front().sequence; }
  // Removes the failure of that submission and returns it. There must be an entry.
  Status take_first();

  struct Entry {
    Status status;
    uint64_t sequence = 0;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  // The number of failures that found no room. They are the latest ones.
  uint64_t dropped() const { return dropped_; }

 private:
  std::vector<Entry> entries_;  // indexed by sequence
  Entry told_loss_;             // the loss of the device, once reported
  uint64_t dropped_ = 0;
};

}  // namespace tenon::vm
