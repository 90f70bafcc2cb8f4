// DeviceQueue: the streams of one asynchronous device, the right to launch on them, and the launch thread. Internal to
// core/vm.
//
// The thread that holds the launch right launches and retires instructions. It is the launch thread, or a thread that
// waits. The README says which file holds which functions.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/device/device_state.h"
#include "core/vm/host_thread.h"
#include "core/vm/staging.h"
#include "core/vm/stream.h"
#include "core/vm/unreported.h"

namespace tenon::vm {

// The next thing that a waiting thread must wait for before its ticket can retire. All empty: nothing, check again.
struct NextStep {
  EventMark* mark = nullptr;  // wait for this event (pinned), or
  Ticket elsewhere;           // wait for this ticket of another device, or
  Ticket on_host;             // wait for the function of this instruction
};

class DeviceQueue {
 public:
  explicit DeviceQueue(DeviceState* device) : staging(device), device_(device) {}

  DeviceState* device() const { return device_; }
  // A new stream for EP_STREAM_* work. The device may ignore the priority.
  Result<Stream*> add_stream(int32_t purpose, int32_t priority);
  // A new stream over a queue of the application.
  Result<Stream*> import_stream(const ep_import_desc& desc);
  // The device's stream for recording command lists; made on first use; nothing else runs on it. The caller holds
  // `recording` as long as it uses the stream.
  Result<ep_stream*> recorder();
  std::mutex recording;  // locked before the launch right
  // Stream `index`, below stream_count().
  Stream& stream(uint16_t index) { return *streams_[index]; }
  uint16_t stream_count() const { return stream_count_.load(std::memory_order_acquire); }
  Stream& compute_stream() { return *streams_[0]; }
  // The stream for uploads. Downloads use it too, until one of them finds uploads in flight. From then on downloads
  // have their own stream, so that a device with two copy engines uses both.
  Stream& upload_stream() { return *streams_[1]; }
  Stream& download_stream();
  // The stream for access instructions; made on first use.
  Result<Stream*> host_stream();

  // Call after a submission: wakes the launch thread if it is parked. The first call starts the thread.
  void notify();
  // Launches and retires all instructions that are ready, then returns what `ticket` (of this device) waits for. Takes
  // the launch right.
  NextStep advance(Ticket ticket);
  // Launches all instructions that are ready. If that includes instruction `number` of `stream`, submits it to the
  // device; else returns what it waits for. Takes the launch right.
  NextStep hand_over(Stream& stream, uint64_t number);
  // Waits for the event of a NextStep, at most `timeout_ns`.
  void wait_mark(EventMark* mark, uint64_t timeout_ns);
  // Waits for the function of a NextStep, at most `timeout_ns`.
  void wait_host(Ticket ticket, uint64_t timeout_ns);
  // Call when the function of an access instruction has ended.
  void host_function_ended();
  // Ends the launch thread.
  void stop();
  // Ends the thread and destroys streams and events. All instructions must have retired. The ids and rings of the
  // streams are reused by the next device that needs streams, so that old tickets stay done.
  void close();

  // Failures that have not been reported yet. Guarded by Engine::submission.
  Unreported unreported;

  StagingPool staging;

  bool beside = false;  // true for a HostWorker's queue, whose streams run only on the host; set before use

  // "stream 1: instruction 17 (relu) is launched, 3 more are queued; ..."
  std::string pending_text();

 private:
  void run_thread();
  bool progress(uint64_t budget);
  bool launch_round(uint64_t budget);
  uint64_t launch_ready(Stream& stream, uint64_t budget);
  bool wait_dependences(Stream& stream, Slot& slot);
  void launch_slot(Stream& stream, Slot& slot, uint64_t number);
  Status why_skipped(Slot& slot);
  Status unpublished_failure(const Slot& slot);
  void launch_on_host(Stream& stream, Slot& slot, uint64_t number);
  Status call_provider(Stream& stream, Slot& slot);
  Status launch_segment(Stream& stream, Slot& slot);
  Status prepare_scratch(Stream& stream, const Slot& slot);
  bool observe(Stream& stream);
  bool observe_host(Stream& stream);
  void take_faults(Stream& stream, uint64_t seen_before);
  void fail_unknown(Stream& stream, uint64_t seen_before);
  bool retire_ready(Stream& stream);
  void settle_status(Slot& slot);
  void retire_slot(Stream& stream, Slot& slot, uint64_t number);
  void trace_device_time(Stream& stream, std::string_view name, uint64_t number);
  void retire_extras(Slot& slot);
  void publish_failure(Stream& stream, Slot& slot, uint64_t number);
  Result<Stream*> add_host_stream();
  Result<Stream*> enlist(ep_stream* handle);
  Stream* take_stream(ep_stream* handle, uint16_t index);
  void destroy_mark(EventMark* mark);
  EventMark* make_mark(Stream& stream);
  EventMark* event_covering(Stream& stream, uint64_t number);
  void pass(Stream& stream, EventMark* mark);
  Status synchronize(Stream& stream);
  void wait_instead(Stream& stream, EventCall call, ep_status code, ep_error* error);
  void complain(Stream& stream, EventCall call, const Status& why);
  void lose(const Status& why);
  bool outstanding();
  uint64_t news();
  Ticket blocked_on();
  void rest(uint64_t seen, std::chrono::nanoseconds nap);
  void mark_and_flush();
  void flush(Stream& stream);
  NextStep next_step(Ticket ticket);

  DeviceState* device_;
  std::array<Stream*, 64> streams_{};
  std::atomic<uint16_t> stream_count_{0};

  std::mutex making_streams_;  // locked before the launch right
  std::atomic<Stream*> downloads_{nullptr};
  std::atomic<Stream*> host_stream_{nullptr};
  bool downloads_refused_ = false;
  ep_stream* recorder_ = nullptr;  // guarded by `recording`
  HostThread host_thread_;
  std::atomic<uint64_t> host_ends_{0};  // number of functions that have ended

  std::mutex right_;
  std::atomic<uint32_t> waiting_{0};  // number of threads that want the right
  std::vector<EventMark*> free_marks_;
  uint32_t pinned_ = 0;  // sum of the pins of all marks
  Status lost_;
  bool launch_failed_ = false;            // true if a launch has failed since the device was opened
  std::vector<std::vector<char>> zeros_;  // for zeroing scratch; the longest is last

  std::mutex park_mutex_;
  std::condition_variable park_changed_;
  std::atomic<bool> parked_{false};
  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// The error of the instruction in `slot`, which failed because of `cause`.
Status slot_error(const Slot& slot, const Status& cause, const DeviceState* device);

// The error of a provider's call: "recording an event on cuda:0: ...".
Status provider_error(const DeviceState* device, ep_status code, ep_error* error, std::string_view doing);

}  // namespace tenon::vm
