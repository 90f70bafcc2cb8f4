// Replay: runs a segment as a command list of its device, recorded after the segment has run a few times. Internal to
// core/graph/execute.
//
// The list keeps the blocks that only its segment uses. These are a cache: they are freed when a run finds no memory.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/vm/command_list.h"

namespace tenon::graph {

// Threads: every function is thread-safe.
class Replay {
 public:
  explicit Replay(DeviceState* device);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // The command list, or null if there is none now.
  std::shared_ptr<vm::CommandList> list() const;
  // Counts a run of `segment` without a list, with its bindings at `bindings`; records the list after the second run. A
  // binding with 0 `moving` bytes is fixed in the list. If the device refuses once, it is not asked again.
  void ran(const std::shared_ptr<const vm::Segment>& segment, std::span<const vm::Operand> bindings,
           std::span<const uint64_t> moving);

 private:
  friend bool drop_replays(DeviceState* device);

  DeviceState* const device_;
  mutable std::mutex mutex_;
  std::shared_ptr<vm::CommandList> list_;
  uint32_t runs_ = 0;
};

// Drops the lists of `device`. Returns false if there was none.
bool drop_replays(DeviceState* device);

}  // namespace tenon::graph
