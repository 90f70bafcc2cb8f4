// FaultLog: the faults of one stream. A launch that may meet bad data gets a slot of a buffer on the device. The first
// work-item that meets bad data takes the slot (an atomic exchange decides) and writes what it met. The log reads the
// slots back in stream order whenever an event is recorded, or when all are in use. So the faults of work before an
// event are on the host when the event is seen, they come in launch order, and none is ever dropped.
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

  // In place of an operand: the kernel writes operand and limit into the slot.
  static constexpr int32_t of_kernel = -1;

  // Takes a slot for the next launch. `operand` and `limit` are what a fault of the launch will say.
  ep_status watch(uint64_t tag, int32_t operand, int64_t limit, cl_mem* out_slots, uint32_t* out_slot,
                  ep_error** error);
  // Enqueues the reading of all slots in use. Work enqueued later may use them again.
  ep_status collect(ep_error** error);
  // The oldest fault that is known. False if there is none.
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
  // Slots on their way to the host.
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
  std::mutex mutex_;  // guards all below
  cl_mem slots_ = nullptr;
  std::vector<Watched> open_;
  std::deque<std::unique_ptr<Reading>> readings_;
  std::deque<ep_fault> faults_;
};

}  // namespace tenon::provider::opencl
