// Engine: the state that all asynchronous devices share. Request: what a caller submits. Internal to core/vm; vm.h is
// the interface.
//
// Lock order: a DeviceQueue's launch right, then Engine::submission. Application code runs under neither.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/vm/device_queue.h"
#include "core/vm/vm.h"

namespace tenon::vm {

// A failed instruction. It is kept while a slot that was submitted before the failure may still read the result.
struct Failure {
  Status status;
  uint64_t sequence = 0;  // number of instructions submitted before it failed
};

// Names of instructions that have no record.
inline constexpr OpName kCopy{"copy"}, kUpload{"upload"}, kDownload{"download"}, kAccess{"access"}, kWait{"wait"},
    kBarrier{"barrier"}, kGraph{"graph"}, kSegment{"segment"}, kReplay{"replay"}, kPack{"pack"}, kAcquire{"acquire"},
    kRelease{"release"}, kWaitSemaphore{"wait for a semaphore"}, kSignalSemaphore{"signal of a semaphore"};

// Labels that a slot submitted earlier may refer to.
struct KeptLabels {
  uint64_t sequence = 0;  // number of instructions submitted before
  std::vector<std::unique_ptr<const std::string>> texts;
};

struct Engine {
  static constexpr uint32_t kMaxStreams = 4096;

  std::mutex submission;
  uint64_t sequence = 0;                           // submissions so far
  std::unordered_map<uint64_t, Failure> failures;  // by Ticket::bits
  std::vector<KeptLabels> labels;
  std::vector<DeviceQueue*> queues;
  std::vector<Stream*> idle_streams;       // from closed devices
  std::atomic<uint32_t> failure_count{0};  // size of `failures`, readable without the lock
  std::atomic<uint32_t> stream_count{0};
  static inline constinit std::array<Stream*, kMaxStreams>
      streams{};  // by id; an entry never changes once it is counted

  static Stream& stream(Ticket ticket) { return *streams[ticket.stream()]; }
  // The number of the oldest submission that has not retired; the next number if all have. The caller holds
  // `submission`.
  uint64_t oldest_pending();
  // Drops failures whose results no slot in flight reads. The caller holds `submission`.
  void forget_failures();
  // Notes that a caller gets `status`, so that synchronize() and the exit do not report it again. The caller holds
  // `submission`.
  void told(const Status& status);
};

// Never destroyed.
Engine& engine();

// Reads TENON_VM and registers the VM's exit functions. Only the first call has an effect.
void begin_life();

class CommandList;
struct SegmentRun;

// An instruction to submit. All pointers are borrowed for the call, except `staging`, `work` and `semaphore`, which are
// taken over.
struct Request {
  Policy policy = Policy::launch;
  Stream* stream = nullptr;
  const OpLaunch* launch = nullptr;
  const GraphLaunch* graph = nullptr;
  const SegmentRun* segment = nullptr;
  CommandList* list = nullptr;     // for a replay of `segment`; must be owned by a shared_ptr
  Primitive* primitive = nullptr;  // for a pack
  const OpName* op = nullptr;      // static
  std::span<const Operand> operands;
  std::span<const Ticket> waits;
  Ticket source;  // a write that it reads and that no storage records
  Status poison;  // not ok: an input is already known to be poisoned
  uint64_t bytes = 0;
  char* host = nullptr;
  ep_device* peer = nullptr;
  Staging* staging = nullptr;
  HostWork* work = nullptr;
  SemaphoreWork* semaphore = nullptr;
  Completion* completion = nullptr;
  ep_buffer workspace{};
};

// The ticket of the submitted instruction. If an operand is known to be poisoned, there is no ticket: the outputs are
// poisoned at once, and `poison` holds the reason.
struct Submitted {
  Ticket ticket;
  Status poison;
};
Submitted submit(const Request& request);
// Submits an instruction. With TENON_VM=sync or `must_wait` it also waits for the end and returns the instruction's
// status.
Status submit_and_follow(const Request& request, bool must_wait, Ticket* ticket = nullptr);
// Submits with `bytes` of workspace, which returns to the allocator with the ticket.
Status submit_with_workspace(Request* request, uint64_t bytes);
// Grows the persistent scratch of `stream` to at least `bytes`.
Status grow_scratch(Stream& stream, uint64_t bytes);
// Notes that a caller gets `status`, and returns it.
Status tell(Status status);
// Error if `device` has no stream of that index.
Status check_stream(const DeviceState* device, uint16_t index);

// A transfer between an asynchronous device and host memory. A download reads operands[0], an upload writes it. A
// further operand, of another device, owns the memory at `host`.
Request download_request(std::span<const Operand> operands, char* host, uint64_t bytes, std::span<const Ticket> waits);
Request upload_request(std::span<const Operand> operands, const char* host, uint64_t bytes,
                       std::span<const Ticket> waits);
// Poisons the bytes that an instruction with `dst` would write, on an asynchronous device. Returns `poison` with
// TENON_VM=sync.
Status poison_destination(const Operand& dst, const Status& poison);

// Waits for `ticket` for at most `timeout_ns`. Errors: timeout; forked.
Status wait_for(Ticket ticket, uint64_t timeout_ns);
// Removes the last write and the reads of `storage` that are done, so that the inline path is fast again. The caller
// holds `submission`.
void refresh(Storage* storage);
// A wait of more milliseconds than this logs the instructions that it waits for.
inline constinit std::atomic<int64_t> report_after_ms{10'000};
// Uploads of at least this many bytes use pinned memory. Uploads above 64 KiB always do; tests lower this value.
inline constinit std::atomic<uint64_t> pinned_from{~uint64_t{0}};
// TENON_VM=sync: every instruction is waited for.
inline constinit std::atomic<bool> synchronous_mode{false};

// Marks the calling thread as one that does work of the VM. A deleter on it may not wait for such work.
void enter_vm_thread();

// While the thread holds the VM's locks, deleters are deferred. They run when the thread leaves its outermost scope.
class DeleterScope {
 public:
  DeleterScope();
  ~DeleterScope();
  DeleterScope(const DeleterScope&) = delete;
  DeleterScope& operator=(const DeleterScope&) = delete;
};

}  // namespace tenon::vm
