// DeviceQueue: the streams of one asynchronous device, the right to launch on them, and the launch thread. Internal to
// core/vm.
//
// The thread that holds the launch right launches and retires instructions: the launch thread, or a thread that waits.
// The README says which file holds which functions.
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

// What a waiting thread has to wait for next, so that its ticket retires. All empty: nothing, look again.
struct NextStep {
  EventMark* mark = nullptr;  // wait for this event (pinned), or
  Ticket elsewhere;           // wait for this ticket of another device, or
  Ticket on_host;             // wait for the function of this instruction
};

class DeviceQueue {
 public:
  explicit DeviceQueue(DeviceState* device) : staging(device), device_(device) {}

  DeviceState* device() const { return device_; }
  // A further stream for EP_STREAM_* work; what the device makes of the priority is its own affair.
  Result<Stream*> add_stream(int32_t purpose, int32_t priority);
  // A further stream over a queue of the application.
  Result<Stream*> import_stream(const ep_import_desc& desc);
  // The device's stream that records command lists, made when first asked for; nothing else runs on it. The caller
  // holds `recording` as long as it uses the stream.
  Result<ep_stream*> recorder();
  std::mutex recording;  // locked before the launch right
  // Stream `index`, below stream_count().
  Stream& stream(uint16_t index) { return *streams_[index]; }
  uint16_t stream_count() const { return stream_count_.load(std::memory_order_acquire); }
  Stream& compute_stream() { return *streams_[0]; }
  // The stream of uploads. Downloads use it too until one of them finds uploads in flight; from then on downloads have
  // a stream of their own, so that a device with two copy engines uses both.
  Stream& upload_stream() { return *streams_[1]; }
  Stream& download_stream();
  // The stream of access instructions, made when first asked for.
  Result<Stream*> host_stream();

  // To be called after a submission: wakes the launch thread if it is parked. The first call starts the thread.
  void notify();
  // Launches and retires all instructions that are ready, then says what `ticket` (of this device) waits for. Takes the
  // launch right.
  NextStep advance(Ticket ticket);
  // Launches all instructions that are ready. If instruction `number` of `stream` is launched then, hands it to the
  // device; else says what it waits for. Takes the launch right.
  NextStep hand_over(Stream& stream, uint64_t number);
  // Waits for the event of a NextStep, at most `timeout_ns`.
  void wait_mark(EventMark* mark, uint64_t timeout_ns);
  // Waits for the function of a NextStep, at most `timeout_ns`.
  void wait_host(Ticket ticket, uint64_t timeout_ns);
  // To be called when the function of an access instruction has ended.
  void host_function_ended();
  // Ends the launch thread.
  void stop();
  // Ends the thread and destroys streams and events. All instructions have retired. The ids and rings of the streams
  // go to the next device that needs streams, so that old tickets stay done.
  void close();

  // Failures that were reported to nobody yet. Under Engine::submission.
  Unreported unreported;

  StagingPool staging;

  bool beside = false;  // that of a HostWorker: its streams are of the host alone; set before it is used

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
  ep_stream* recorder_ = nullptr;  // under `recording`
  HostThread host_thread_;
  std::atomic<uint64_t> host_ends_{0};  // how many functions have ended

  std::mutex right_;
  std::atomic<uint32_t> waiting_{0};  // threads that want the right
  std::vector<EventMark*> free_marks_;
  uint32_t pinned_ = 0;  // pins of all marks
  Status lost_;
  bool launch_failed_ = false;            // some launch has, since the device was opened
  std::vector<std::vector<char>> zeros_;  // for scratch; the longest last

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
