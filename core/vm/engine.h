// Engine: what all asynchronous devices share, and what a submission says. Internal to core/vm; vm.h is the door.
//
// Lock order: a DeviceQueue's launch right, then Engine::submission. Application code runs under neither.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/vm/device_queue.h"
#include "core/vm/vm.h"

namespace tenon::vm {

// A failed instruction, kept while a slot submitted before it failed may still have to learn of it.
struct Failure {
  Status status;
  uint64_t sequence = 0;  // submissions before it failed
};

struct Engine {
  static constexpr uint32_t kMaxStreams = 4096;

  std::mutex submission;
  uint64_t sequence = 0;                           // submissions so far
  std::unordered_map<uint64_t, Failure> failures;  // by Ticket::bits
  std::vector<DeviceQueue*> queues;
  std::vector<Stream*> idle_streams;       // of devices that are closed
  std::atomic<uint32_t> failure_count{0};  // of `failures`, to be read without the lock
  std::atomic<uint32_t> stream_count{0};
  static inline constinit std::array<Stream*, kMaxStreams> streams{};  // by id; never changes once counted

  static Stream& stream(Ticket ticket) { return *streams[ticket.stream()]; }
  // Forgets failures that no slot in flight can have read. `submission` held.
  void forget_failures();
  // Somebody is told of `status`: synchronize() and the end of the process will not tell it again. `submission` held.
  void told(const Status& status);
};

// Never destroyed.
Engine& engine();

// Reads TENON_VM and adds what the VM does at the end of the process; the first call counts.
void begin_life();

// What to submit. Everything is borrowed for the call, `staging` and `work` are taken over.
struct Request {
  Policy policy = Policy::launch;
  Stream* stream = nullptr;
  const OpLaunch* launch = nullptr;
  std::string_view op;
  std::span<const Operand> operands;
  std::span<const Ticket> waits;
  Ticket source;  // a write it reads that no storage tells of
  Status poison;  // not ok: what it reads is known to be poisoned
  uint64_t bytes = 0;
  char* host = nullptr;
  ep_device* peer = nullptr;
  Staging* staging = nullptr;
  HostWork* work = nullptr;
  Completion* completion = nullptr;
  ep_buffer workspace{};
};

// The ticket of what was submitted; none where an operand is known to be poisoned: then the outputs are poisoned now,
// and `poison` says why.
struct Submitted {
  Ticket ticket;
  Status poison;
};
Submitted submit(const Request& request);
// The same, and in TENON_VM=sync, or where `must_wait`, waits for the end and returns how it ended.
Status submit_and_follow(const Request& request, bool must_wait, Ticket* ticket = nullptr);
// Notes that somebody is told of `status`, and returns it.
Status tell(Status status);
// Error: `device` has no stream of that index.
Status check_stream(const DeviceState* device, uint16_t index);

// A transfer between an asynchronous device and memory of the host. operands[0] is what is read (written); another one,
// of another device, owns the memory at `host`.
Request download_request(std::span<const Operand> operands, char* host, uint64_t bytes, std::span<const Ticket> waits);
Request upload_request(std::span<const Operand> operands, const char* host, uint64_t bytes,
                       std::span<const Ticket> waits);
// Marks what `dst`, of an asynchronous device, writes as failed with `poison`. In TENON_VM=sync, returns it.
Status poison_destination(const Operand& dst, const Status& poison);

// Waits for `ticket` until `timeout_ns` have passed. Errors: timeout; forked.
Status wait_for(Ticket ticket, uint64_t timeout_ns);
// Forgets what is done of `storage`'s last write and reads, so that the inline path is fast again. `submission` held.
void refresh(Storage* storage);
// After so many milliseconds a wait says what is pending on what.
inline constinit std::atomic<int64_t> report_after_ms{10'000};
// Uploads of so many bytes and more go through pinned memory, as those above 64 KiB do anyway; tests lower it.
inline constinit std::atomic<uint64_t> pinned_from{~uint64_t{0}};
// TENON_VM=sync: every instruction is waited for.
inline constinit std::atomic<bool> synchronous_mode{false};

// Runs deleters that were put off while the thread held the VM's locks, when it leaves the outermost scope.
class DeleterScope {
 public:
  DeleterScope();
  ~DeleterScope();
  DeleterScope(const DeleterScope&) = delete;
  DeleterScope& operator=(const DeleterScope&) = delete;
};

}  // namespace tenon::vm
