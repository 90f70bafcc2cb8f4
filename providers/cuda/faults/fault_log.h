// FaultLog: the faults of one stream, in the order of its launches. A launch that may meet bad data gets a number and a
// slot in pinned memory. Its kernels write the first fault into the slot. Once an event after the launch has fired, the
// slot shows if the launch faulted.
//
// A command list has its own log for its recorded launches. Each replay is one entry in the log of its stream; once
// the replay is done, the faults of the list's log become faults of the replay.
//
// Owner: the stream, and every event recorded on it, because an event may be queried after its stream is destroyed;
// or a command list, and the entries of its replays.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "ep_api/ep_api.h"
#include "providers/cuda/kernels/arguments.h"

namespace tenon::provider::cuda {

struct Driver;

inline constexpr uint64_t fault_slots = 256;  // limit of pending launches that may fault, per stream

// A slot, followed by the data that kernel modules write. Mirrors ep_fault_slot of modules/source.cpp.
struct FaultRecord : FaultSlot {
  int32_t operand;
  int32_t unused;
};

class FaultLog {
 public:
  // Makes room for one more launch on `stream`. Allocates the slots at the first call. If every slot belongs to a
  // pending launch, waits for the stream. The device's context is current.
  CUresult make_room(const Driver& driver, CUstream stream);
  // Called when the stream is destroyed. Drops faults that nobody took.
  void release(const Driver& driver);

  // Used as `operand` if the kernel itself writes the operand.
  static constexpr int32_t of_kernel = -1;

  // Adds a launch named `tag` and returns its fault target. Its fault blames `operand`.
  FaultTarget add(uint64_t tag, int32_t operand);
  // Adds a replay, named `tag`, of the command list with log `list`.
  void add_replay(uint64_t tag, std::shared_ptr<FaultLog> list);
  // Undoes the last add() or add_replay(), because the launch failed.
  void cancel();

  // The number of the last launch added. An event keeps it.
  uint64_t last() const { return last_.load(std::memory_order_acquire); }
  // Marks all launches up to number `sequence` as done.
  void complete(uint64_t sequence);
  // Returns the oldest fault of a finished launch, once.
  std::optional<ep_fault> take();

  // --- the log of a command list ---
  // Makes this the log of a list: its launches stay, and add() names each by the number of its call.
  void keep_launches() { kept_ = true; }
  // Called when the last replay of this list, entry `sequence` of `log`, is done: moves its faults there.
  static void end_replay(FaultLog& log, uint64_t sequence);

 private:
  struct Pending {
    uint64_t sequence;
    uint64_t tag;
    int32_t operand;
    std::shared_ptr<FaultLog> list;  // for a replay
  };
  void collect(uint64_t tag, std::deque<ep_fault>* out_faults);
  ep_fault fault_of(const Pending& launch, uint64_t tag, uint64_t flags) const;
  CUresult take_memory(const Driver& driver, CUstream stream);
  void settle();

  bool kept_ = false;  // the log of a command list
  std::mutex mutex_;   // lock order: the log of a stream before the log of a list
  FaultRecord* slots_ = nullptr;
  CUdeviceptr claim_ = 0;
  std::atomic<uint64_t> last_{0};
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint64_t> open_{0};  // number of entries, readable without the lock
  std::deque<Pending> pending_;
  std::deque<ep_fault> ready_;
};

}  // namespace tenon::provider::cuda
