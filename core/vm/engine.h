// Engine: what all asynchronous devices share; Stream: one in-order stream; DeviceQueue: one device's streams, its
// launch right and its launch thread. Internal to core/vm; vm.h is the door.
//
// Three steps in the life of an instruction, each a counter of its stream that only grows:
//   submitted   its slot is in the ring           under Engine::submission, by the calling thread
//   launched    the provider has it               under DeviceQueue's launch right
//   retired     an event after it was seen, its faults were taken, its poison is settled      under the launch right
// Lock order: launch right, then submission. Application code runs under neither.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/vm/slot.h"
#include "core/vm/unreported.h"
#include "core/vm/vm.h"

namespace tenon::vm {

class DeviceQueue;

// An event of the provider, recorded after instruction `point` of its stream; all instructions up to it share it.
struct EventMark {
  ep_event* handle = nullptr;
  uint64_t point = 0;
  uint32_t pins = 0;    // threads that wait for it without the launch right
  bool passed = false;  // seen; goes back to the pool with its last pin
};

struct Stream {
  static constexpr uint64_t kRing = 1024;

  DeviceQueue* queue = nullptr;
  ep_stream* handle = nullptr;
  uint16_t id = 0;     // among all streams of the process, from 1
  uint16_t index = 0;  // among those of its device
  std::unique_ptr<Slot[]> ring = std::make_unique<Slot[]>(kRing);

  // Under Engine::submission. covered[t]: the highest instruction of stream t that something submitted here waits for.
  std::vector<uint64_t> covered;
  memory::Block scratch;

  alignas(64) std::atomic<uint64_t> submitted{0};
  alignas(64) std::atomic<uint64_t> launched{0};
  std::atomic<uint64_t> retired{0};

  // Under the launch right.
  uint64_t recorded = 0;   // point of the last event
  uint64_t completed = 0;  // point of the last event seen
  std::deque<EventMark*> events;
  ep_buffer clean_scratch{};  // the scratch that is zero, if any

  Slot& slot(uint64_t number) { return ring[number % kRing]; }
  bool done(uint64_t number) const { return retired.load(std::memory_order_acquire) >= number; }
  Ticket ticket(uint64_t number) const { return Ticket::make(id, number); }
};

// What a waiting thread has to do next for its ticket to retire.
struct NextStep {
  EventMark* mark = nullptr;  // wait for this event (pinned), or
  Ticket elsewhere;           // wait for this ticket of another device; neither: look again
};

class DeviceQueue {
 public:
  explicit DeviceQueue(DeviceState* device) : device_(device) {}

  DeviceState* device() const { return device_; }
  Result<Stream*> add_stream();
  // Stream `index`, below stream_count().
  Stream& stream(uint16_t index) { return *streams_[index]; }
  uint16_t stream_count() const { return stream_count_.load(std::memory_order_acquire); }

  // Something was submitted: wakes the launch thread if it is parked; the first call starts it.
  void notify();
  // Launches and retires what can be, then says what `ticket` (of this device) waits for. Takes the launch right.
  NextStep advance(Ticket ticket);
  // Waits for the event of a NextStep, at most `timeout_ns`.
  void wait_mark(EventMark* mark, uint64_t timeout_ns);
  // Ends the launch thread.
  void stop();
  // Ends the thread and destroys streams and events. Everything submitted has retired; the streams' numbers and rings
  // go to the next device that needs some, so that old tickets stay done.
  void close();

  // Under Engine::submission: failures nobody has been told of.
  Unreported unreported;

  // "stream 1: instruction 17 (relu) is launched, 3 more are queued; ..."
  std::string pending_text();

 private:
  void run_thread();
  bool progress(uint64_t budget);
  bool launch_ready(Stream& stream, uint64_t budget);
  bool wait_dependences(Stream& stream, Slot& slot);
  void launch_slot(Stream& stream, Slot& slot, uint64_t number);
  Status call_provider(Stream& stream, Slot& slot, uint64_t number);
  Status prepare_scratch(Stream& stream, const Slot& slot);
  bool observe(Stream& stream);
  void take_faults(Stream& stream, uint64_t seen_before);
  void fail_unknown(Stream& stream, uint64_t seen_before);
  bool retire_ready(Stream& stream);
  void settle_status(Slot& slot);
  void retire_slot(Stream& stream, Slot& slot, uint64_t number);
  void publish_failure(Stream& stream, Slot& slot, uint64_t number);
  Stream* take_stream(ep_stream* handle, uint16_t index);
  void destroy_mark(EventMark* mark);
  EventMark* record(Stream& stream);
  EventMark* event_covering(Stream& stream, uint64_t number);
  void pass(Stream& stream, EventMark* mark);
  Status synchronize(Stream& stream);
  void wait_instead(Stream& stream, ep_status code, const Status& why);
  void lose(const Status& why);
  bool outstanding();
  uint64_t submissions();
  Ticket blocked_on();
  void rest(uint64_t seen, std::chrono::nanoseconds nap);
  void record_and_flush();
  NextStep next_step(Ticket ticket);

  DeviceState* device_;
  std::array<Stream*, 64> streams_{};
  std::atomic<uint16_t> stream_count_{0};

  std::mutex right_;
  std::atomic<uint32_t> waiting_{0};  // threads that want the right
  std::vector<EventMark*> free_marks_;
  uint32_t pinned_ = 0;  // pins of all marks
  Status lost_;
  std::vector<std::vector<char>> zeros_;  // for scratch; the longest last

  std::mutex park_mutex_;
  std::condition_variable park_changed_;
  std::atomic<bool> parked_{false};
  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

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
  std::array<Stream*, kMaxStreams> streams{};  // by id; never changes once counted

  Stream& stream(Ticket ticket) { return *streams[ticket.stream()]; }
  // Forgets failures that no slot in flight can have read. `submission` held.
  void forget_failures();
  // Somebody is told of `status`: synchronize() and the end of the process will not tell it again. `submission` held.
  void told(const Status& status);
};

// Never destroyed.
Engine& engine();

// Reads TENON_VM and adds what the VM does at the end of the process; the first call counts.
void begin_life();

// What to submit. Everything is borrowed for the call, `staging` is taken over.
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
Status submit_and_follow(Request request, bool must_wait, Ticket* ticket = nullptr);
// Notes that somebody is told of `status`, and returns it.
Status tell(Status status);
// Error: `device` has no stream of that index.
Status check_stream(const DeviceState* device, uint16_t index);

// Waits for `ticket` until `timeout_ns` have passed. Errors: timeout; forked.
Status wait_for(Ticket ticket, uint64_t timeout_ns);
// Forgets what is done of `storage`'s last write and reads, so that the inline path is fast again. `submission` held.
void refresh(Storage* storage);
// After so many milliseconds a wait says what is pending on what.
inline constinit std::atomic<int64_t> report_after_ms{10'000};
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
