// FaultLog: the faults of one stream. A launch that may meet bad data gets a slot in a device buffer. The first
// work-item that meets bad data takes the slot (by an atomic exchange) and writes the fault. The log reads the slots
// back in stream order whenever an event is recorded, or when all slots are in use. So when an event is seen, the
// faults of earlier work are on the host; they come in launch order, and none is dropped.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "providers/opencl/driver/context.h"

namespace tenon::provider::opencl {

// Threads: any. Owner: the CommandQueue.
class FaultLog {
 public:
  FaultLog(std::shared_ptr<Context> context, cl_command_queue queue) : context_(std::move(context)), queue_(queue) {}
  ~FaultLog();
  FaultLog(const FaultLog&) = delete;
  FaultLog& operator=(const FaultLog&) = delete;

  // Used as `operand` if the kernel writes operand and limit into the slot.
  static constexpr int32_t of_kernel = -1;

  // Takes a slot for the next launch. A fault of the launch reports `operand` and `limit`.
  ep_status watch(uint64_t tag, int32_t operand, int64_t limit, cl_mem* out_slots, uint32_t* out_slot,
                  ep_error** error);
  // Enqueues a read of all slots in use. Work enqueued later may reuse them.
  ep_status collect(ep_error** error);
  // Returns the oldest known fault. False if there is none.
  bool take(ep_fault* out_fault);

 private:
  static constexpr uint32_t most_slots = 256;

  // Mirrors struct ep_fault_slot of programs/fault.cl.
  struct Slot {
    uint32_t taken;
    int32_t code;
    int64_t value;
    int64_t limit;
    int32_t operand;
    int32_t reserved;
  };
  struct Watched {
    uint64_t tag;
    int32_t operand;
    int64_t limit;
  };
  // Slots that are being read back.
  struct Reading {
    std::vector<Watched> launches;
    std::vector<Slot> slots;
    cl_event arrived = nullptr;
  };

  ep_status collect_locked(ep_error** error);
  ep_status clear(uint32_t slots, ep_error** error);
  bool has_arrived(const Reading& reading) const;
  void keep_faults_of(const Reading& reading);

  std::shared_ptr<Context> context_;
  cl_command_queue queue_;
  std::mutex mutex_;  // guards all members below
  cl_mem slots_ = nullptr;
  std::vector<Watched> open_;
  std::deque<std::unique_ptr<Reading>> readings_;
  std::deque<ep_fault> faults_;
};

}  // namespace tenon::provider::opencl
