// FaultLog: the faults of one stream, in the order of its launches. A launch that may meet bad data gets a number and a
// slot in pinned memory. Its kernels write the first fault into the slot. Once an event behind the launch has fired,
// the slot says whether the launch faulted.
//
// A command list has a log of its own, to which its recorded launches are added. Each replay is one entry in the log of
// its stream; once the replay is done, the faults of the list's log become those of the replay.
//
// Owner: the stream, and every event recorded on it, because an event may be queried after its stream is gone. A
// command list, and the entries of its replays.
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

inline constexpr uint64_t fault_slots = 256;  // pending launches that may fault, per stream

// A slot, with what kernels of the host's texts write beside it. Mirrors ep_fault_slot of modules/source.cpp.
struct FaultRecord : FaultSlot {
  int32_t operand;
  int32_t unused;
};

class FaultLog {
 public:
  // Makes room for one more launch on `stream`. Allocates the slots at the first call. If every slot belongs to a
  // pending launch, waits for the stream. The device's context is current.
  CUresult make_room(const Driver& driver, CUstream stream);
  // The stream is being destroyed. Faults that nobody took are dropped.
  void release(const Driver& driver);

  // In place of an operand: the kernel writes the operand.
  static constexpr int32_t of_kernel = -1;

  // The fault target of a launch named `tag`; the fault blames `operand`.
  FaultTarget add(uint64_t tag, int32_t operand);
  // A replay, named `tag`, of the command list whose log is `list`.
  void add_replay(uint64_t tag, std::shared_ptr<FaultLog> list);
  // Undoes the last add() or add_replay(), because the launch failed.
  void cancel();

  // The number of the last launch added. An event keeps it.
  uint64_t last() const { return last_.load(std::memory_order_acquire); }
  // Marks every launch up to number `sequence` as done.
  void complete(uint64_t sequence);
  // Returns the oldest fault of a done launch. Returns each fault once.
  std::optional<ep_fault> take();

  // --- the log of a command list ---
  // This is the log of a list: its launches stay, and add() names each by the number of its call.
  void keep_launches() { kept_ = true; }
  // The last replay of this list, number `sequence` of `log`, is done: its faults go there.
  static void end_replay(FaultLog& log, uint64_t sequence);

 private:
  struct Pending {
    uint64_t sequence;
    uint64_t tag;
    int32_t operand;
    std::shared_ptr<FaultLog> list;  // of a replay
  };
  void collect(uint64_t tag, std::deque<ep_fault>* out_faults);
  ep_fault fault_of(const Pending& launch, uint64_t tag, uint64_t flags) const;
  CUresult take_memory(const Driver& driver, CUstream stream);
  void settle();

  bool kept_ = false;  // the log of a command list
  std::mutex mutex_;   // that of a stream is locked before that of a list
  FaultRecord* slots_ = nullptr;
  CUdeviceptr claim_ = 0;
  std::atomic<uint64_t> last_{0};
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint64_t> open_{0};  // number of entries, readable without the lock
  std::deque<Pending> pending_;
  std::deque<ep_fault> ready_;
};

}  // namespace tenon::provider::cuda
