// FaultLog: the faults of one stream, in the order of its launches. A launch that may meet bad data is given a number
// and a slot in pinned memory; its kernels write there what they met first. Once an event behind the launch has been
// seen, the slot says whether it faulted.
//
// Owned by its stream and by the events recorded on it, since an event may be asked about after its stream has gone.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "ep_api/ep_api.h"
#include "providers/cuda/kernels/arguments.h"

namespace tenon::provider::cuda {

struct Driver;

inline constexpr uint64_t fault_slots = 256;  // launches that may fault and are pending at once, per stream

class FaultLog {
 public:
  // Makes sure that a launch on `stream` can be added: takes the memory when first asked, and waits for the stream
  // where every slot belongs to a launch that has not been seen to be done. The device's context is current.
  CUresult make_room(const Driver& driver, CUstream stream);
  // The stream goes away; what was not taken is forgotten.
  void release(const Driver& driver);

  // The target of a launch named `tag` whose operand `operand` may be bad.
  FaultTarget add(uint64_t tag, int32_t operand, int64_t least);
  // Takes the last `add` back: that launch did not happen.
  void cancel();

  // The number of the last launch added so far, to be kept with an event.
  uint64_t last() const { return last_.load(std::memory_order_acquire); }
  // Everything up to launch number `sequence` is done.
  void complete(uint64_t sequence);
  // The oldest fault of a launch that is done, once.
  std::optional<ep_fault> take();

 private:
  struct Pending {
    uint64_t sequence;
    uint64_t tag;
    int32_t operand;
  };
  CUresult take_memory(const Driver& driver, CUstream stream);
  void settle();

  std::mutex mutex_;
  FaultSlot* slots_ = nullptr;
  CUdeviceptr claim_ = 0;
  std::atomic<uint64_t> last_{0};
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint64_t> open_{0};  // entries of the two below, to be read without the lock
  std::deque<Pending> pending_;
  std::deque<ep_fault> ready_;
};

}  // namespace tenon::provider::cuda
