#include "core/vm/device_time.h"

#include "core/device/trace.h"
#include "core/vm/device_queue.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

constexpr int kTries = 3;  // attempts to wait for a stream

}  // namespace

std::unique_ptr<DeviceTime> DeviceTime::of_stream(DeviceState* device, ep_stream* stream) {
  std::unique_ptr<DeviceTime> times(new DeviceTime(device, stream));
  times->origin_ = times->record();
  if (times->origin_ == nullptr) return times;
  ep_error* error = nullptr;
  const ep_status code = device->ops.event_host_wait(times->origin_, UINT64_MAX, &error);
  times->origin_ns_ = trace_now();
  if (code == EP_STATUS_OK) return times;
  times->give_up(code, error, "waiting for the first event of a stream with times");
  // The event may still fire, so wait for the whole stream. If the wait fails too, the device is lost, and the first
  // instruction will report that.
  for (int tries = 1; tries <= kTries; ++tries) {
    if (device->ops.stream_synchronize(stream, nullptr) == EP_STATUS_OK) break;
  }
  return times;
}

DeviceTime::~DeviceTime() {
  for (const Instruction& one : pending_) {
    free_.push_back(one.begin);
    free_.push_back(one.end);
  }
  free_.push_back(origin_);
  for (ep_event* event : free_) device_->ops.event_destroy(device_->handle, event);
}

void DeviceTime::begin(uint64_t number) {
  if (ep_event* event = record()) pending_.push_back({number, event, nullptr});
}

void DeviceTime::end(uint64_t number) {
  if (!pending_.empty() && pending_.back().number == number) pending_.back().end = record();
}

std::optional<DeviceTime::Span> DeviceTime::take(uint64_t number) {
  while (!pending_.empty() && pending_.front().number <= number) {
    const Instruction one = pending_.front();
    pending_.pop_front();
    std::optional<uint64_t> begin, length;
    if (one.number == number && one.end != nullptr) {
      begin = elapsed(origin_, one.begin);
      length = elapsed(one.begin, one.end);
    }
    for (ep_event* event : {one.begin, one.end}) {
      if (event != nullptr) free_.push_back(event);
    }
    if (begin && length) return Span{origin_ns_ + *begin, origin_ns_ + *begin + *length};
  }
  return std::nullopt;
}

ep_event* DeviceTime::record() {
  if (failed_) return nullptr;
  const ep_device_ops& ops = device_->ops;
  ep_event* event = nullptr;
  ep_error* error = nullptr;
  ep_status code = EP_STATUS_OK;
  if (!free_.empty()) {
    event = free_.back();
    free_.pop_back();
  } else {
    code = ops.event_create(device_->handle, &event, &error);
  }
  if (code == EP_STATUS_OK) code = ops.event_record(event, stream_, &error);
  if (code == EP_STATUS_OK) return event;
  if (event != nullptr) free_.push_back(event);
  give_up(code, error, "recording an event with a time");
  return nullptr;
}

std::optional<uint64_t> DeviceTime::elapsed(ep_event* from, ep_event* to) {
  uint64_t ns = 0;
  ep_error* error = nullptr;
  const ep_status code = device_->ops.event_elapsed(from, to, &ns, &error);
  if (code == EP_STATUS_OK) return ns;
  give_up(code, error, "asking for the time of an event");
  return std::nullopt;
}

void DeviceTime::give_up(ep_status code, ep_error* error, const char* doing) {
  const Status why = provider_error(device_, code, error, doing);
  if (!failed_ && code != EP_STATUS_DEVICE_LOST) {
    loader::log(loader::LogTopic::vm, loader::LogLevel::warning,
                fmt::format("{}\n  The trace has no more device times of this stream.", why.message()));
  }
  failed_ = true;
}

}  // namespace tenon::vm
