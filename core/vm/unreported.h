// Unreported: the failures of one device that nobody was told of yet, in the order of submission. A failure that
// several instructions share (the loss of their device) is one entry.
//
// Threads: none of its own; Engine::submission is held around every call.
#pragma once

#include <cstdint>
#include <vector>

#include "primitives/status/status.h"

namespace tenon::vm {

class Unreported {
 public:
  // The instruction that was submitted as number `sequence` of the process failed with `status`.
  void add(const Status& status, uint64_t sequence);
  // Somebody was told `status` when the process had submitted `sequence` instructions. An instruction that was
  // submitted until then and fails with the same failure later adds nothing: when it fails depends on timing, what is
  // told does not.
  void told(const Status& status, uint64_t sequence);

  bool empty() const { return entries_.empty(); }
  // The submission that failed first. Not empty.
  uint64_t first_sequence() const { return entries_.front().sequence; }
  // Takes its failure off. Not empty.
  Status take_first();

  struct Entry {
    Status status;
    uint64_t sequence = 0;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  // How many failures found no room; those of the latest submissions.
  uint64_t dropped() const { return dropped_; }

 private:
  std::vector<Entry> entries_;  // by sequence
  Entry told_loss_;             // the loss of the device, once told
  uint64_t dropped_ = 0;
};

}  // namespace tenon::vm
