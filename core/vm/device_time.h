// DeviceTime: when the instructions of one stream ran, by the clock of the device, for the trace. Internal to core/vm.
//
// The stream was made with EP_STREAM_FLAG_TIMED. An event stands before each traced instruction and one behind it. The
// device's clock is put on the trace's by one event at the beginning: its time is that at which the host had seen it,
// so all times of the stream are late by as long as that took. Threads: under the launch right.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/device/device_state.h"
#include "ep_api/ep_api.h"

namespace tenon::vm {

class DeviceTime {
 public:
  // Of `stream`, which is new. If the device fails to tell the time, there are no times.
  static std::unique_ptr<DeviceTime> of_stream(DeviceState* device, ep_stream* stream);
  ~DeviceTime();
  DeviceTime(const DeviceTime&) = delete;
  DeviceTime& operator=(const DeviceTime&) = delete;

  // To be called before and behind the submission of instruction `number`.
  void begin(uint64_t number);
  void end(uint64_t number);

  // On the trace's clock, in nanoseconds.
  struct Span {
    uint64_t begin, end;
  };
  // When instruction `number`, whose event has come, ran. Nothing if its events failed.
  std::optional<Span> take(uint64_t number);

 private:
  DeviceTime(DeviceState* device, ep_stream* stream) : device_(device), stream_(stream) {}
  ep_event* record();
  std::optional<uint64_t> elapsed(ep_event* from, ep_event* to);
  // Logs the first failure, and takes no more times.
  void give_up(ep_status code, ep_error* error, const char* doing);

  struct Instruction {
    uint64_t number;
    ep_event *begin, *end;  // null: not recorded
  };

  DeviceState* device_;
  ep_stream* stream_;
  ep_event* origin_ = nullptr;
  uint64_t origin_ns_ = 0;
  bool failed_ = false;
  std::deque<Instruction> pending_;
  std::vector<ep_event*> free_;
};

}  // namespace tenon::vm
