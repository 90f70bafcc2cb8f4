// DeviceTime: measures when the instructions of one stream ran, by the device's clock, for the trace. Internal to
// core/vm.
//
// The stream is made with EP_STREAM_FLAG_TIMED. Each traced instruction has an event before and after it. One event at
// the beginning aligns the device's clock with the trace's: it gets the time at which the host saw it. So all times of
// the stream are late by that delay. Threads: under the launch right.
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
  // For `stream`, which is new. If the device cannot tell the time, no times are recorded.
  static std::unique_ptr<DeviceTime> of_stream(DeviceState* device, ep_stream* stream);
  ~DeviceTime();
  DeviceTime(const DeviceTime&) = delete;
  DeviceTime& operator=(const DeviceTime&) = delete;

  // Call before and after the submission of instruction `number`.
  void begin(uint64_t number);
  void end(uint64_t number);

  // On the trace's clock, in nanoseconds.
  struct Span {
    uint64_t begin, end;
  };
  // The run time of instruction `number`, whose event has fired. Nothing if its events failed.
  std::optional<Span> take(uint64_t number);

 private:
  DeviceTime(DeviceState* device, ep_stream* stream) : device_(device), stream_(stream) {}
  ep_event* record();
  std::optional<uint64_t> elapsed(ep_event* from, ep_event* to);
  // Logs the first failure, and stops recording times.
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
