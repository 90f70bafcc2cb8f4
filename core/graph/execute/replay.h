// Replay: a segment as a command list of its device, recorded once the segment has run a few times. Internal to
// core/graph/execute.
//
// The list keeps the blocks that its segment alone uses. They are a cache: they go when a run finds no memory.
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

  // The list, if there is one now.
  std::shared_ptr<vm::CommandList> list() const;
  // Counts a plain run of `segment`, whose bindings lay at `bindings`; records the list after the second. A binding
  // with 0 `moving` bytes stays with the list. If the device refuses, nobody asks again.
  void ran(const std::shared_ptr<const vm::Segment>& segment, std::span<const vm::Operand> bindings,
           std::span<const uint64_t> moving);

 private:
  friend bool drop_replays(DeviceState* device);

  DeviceState* const device_;
  mutable std::mutex mutex_;
  std::shared_ptr<vm::CommandList> list_;
  uint32_t runs_ = 0;
};

// Drops the lists of `device`. False: there was none.
bool drop_replays(DeviceState* device);

}  // namespace tenon::graph
