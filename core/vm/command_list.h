// CommandList: a segment that an asynchronous device has recorded, and replays as one piece of work (ep_api.h, "Command
// lists"). Internal to the library.
//
// A list is made for its bindings. Some stay as they were recorded, such as the blocks of a memory plan and their
// workspace; others move: each run gives them new memory. If the device cannot do that, the list has its own memory for
// them, and a run copies into it and out of it.
//
// Only one replay is in flight at a time: a run that starts during another launches the segment without the list.
// Holders of the list and each replay keep it alive, so the device's list is destroyed after its last replay has
// retired. The allocator counts its storages; `bytes` counts the rest.
//
// Threads: every function is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/vm/opaque.h"
#include "core/vm/segment.h"

namespace tenon::vm {

class CommandList : public std::enable_shared_from_this<CommandList> {
 public:
  // How a run provides one binding of the segment.
  struct Binding {
    Operand operand;  // the location of the operand while the list is recorded
    uint64_t moving_bytes =
        0;  // the bytes that each run provides; 0: the binding stays, and the list keeps its storage
  };

  // Makes the device record `segment` on a separate stream. Nothing runs. Errors: unsupported, with the reason (launch
  // the segment without a list then); out_of_device_memory; those of a launch.
  static Result<std::shared_ptr<CommandList>> record(std::shared_ptr<const Segment> segment,
                                                     std::span<const Binding> bindings);
  ~CommandList();
  CommandList(const CommandList&) = delete;
  CommandList& operator=(const CommandList&) = delete;

  // Runs the segment with `bindings`: the recorded storages and offsets for those that stay, and any for those that
  // move. Uses a replay if no other is in flight. Errors are reported as by run(SegmentRun); a fault names its launch.
  // A retired device is an error.
  Status run(std::span<const Operand> bindings, uint16_t stream);

  const Segment& segment() const { return *segment_; }
  // The storage of a binding that stays.
  const StorageOwner& kept(size_t binding) const { return kept_[binding]; }
  uint64_t bytes() const { return bytes_; }  // the device's list and its scratch, without storages
  uint64_t replays() const { return replays_.load(std::memory_order_relaxed); }

  // --- for the VM --- For a launched replay; null if the device has ended.
  ep_command_list* handle() const { return handle_; }
  // The numbers of the bindings that a replay passes to the device.
  std::span<const uint32_t> moving() const { return device_moves_ ? moving_ : std::span<const uint32_t>(); }
  // Called when a replay met bad data, so its scratch may not be zero.
  void soil() { soiled_.store(true, std::memory_order_relaxed); }

 private:
  explicit CommandList(std::shared_ptr<const Segment> segment) : segment_(std::move(segment)) {}
  friend void destroy_command_lists(DeviceState* device);

  Status adopt(std::span<const Binding> bindings);
  Status make_scratch();
  Status clean_scratch();
  Status make_own_memory();
  Status ask(bool device_moves);
  Status record_on(ep_stream* stream, bool device_moves);
  Status check(std::span<const Operand> bindings) const;
  Status copy_in(std::span<const Operand> bindings) const;
  Status copy_out(std::span<const Operand> bindings) const;
  Status replay(std::span<const Operand> bindings, uint16_t stream);
  Operand recorded(size_t index) const;

  const std::shared_ptr<const Segment> segment_;
  std::vector<Binding> bindings_;
  std::vector<StorageOwner> kept_;  // by binding: the storage that stays, or the list's own memory
  std::vector<uint32_t> moving_;
  bool device_moves_ = false;  // true if the device takes new memory for the bindings that move
  StorageOwner scratch_;
  ep_command_list* handle_ = nullptr;
  uint64_t bytes_ = 0;
  std::atomic<uint64_t> replays_{0};
  std::atomic<bool> soiled_{true};

  std::mutex mutex_;  // serialises runs; locked before Engine::submission
  Ticket last_;       // the last replay
};

// True if `device` can record command lists.
inline bool records_lists(const DeviceState* device) { return device->ops.command_list_begin != nullptr; }

}  // namespace tenon::vm
