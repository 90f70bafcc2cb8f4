// DeviceQueue: its streams, and one round of launching and retiring under the launch right.
#include <algorithm>

#include "core/device/trace.h"
#include "core/vm/engine.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

constexpr uint64_t kLaunchBatch = 64;  // instructions launched in a row before checking which ones are done

}  // namespace

Status provider_error(const DeviceState* device, ep_status code, ep_error* error, std::string_view doing) {
  return loader::take_error(code, error, fmt::format("{} on {}", doing, device->opened->spelling));
}

Result<Stream*> DeviceQueue::add_stream(int32_t purpose, int32_t priority) {
  std::lock_guard right(right_);
  const bool timed = tracing() && device_->ops.event_elapsed != nullptr;
  const ep_stream_desc desc{sizeof desc, EP_STRUCT_STREAM_DESC,           nullptr, purpose,
                            priority,    timed ? EP_STREAM_FLAG_TIMED : 0};
  ep_stream* handle = nullptr;
  ep_error* error = nullptr;
  const ep_status code = device_->ops.stream_create(device_->handle, &desc, &handle, &error);
  if (code != EP_STATUS_OK) return provider_error(device_, code, error, "creating a stream");
  Result<Stream*> stream = enlist(handle);
  if (!stream.ok()) device_->ops.stream_destroy(device_->handle, handle);
  if (stream.ok() && timed) stream.value()->times = DeviceTime::of_stream(device_, handle);
  return stream;
}

Result<Stream*> DeviceQueue::import_stream(const ep_import_desc& desc) {
  std::lock_guard right(right_);
  ep_stream* handle = nullptr;
  ep_error* error = nullptr;
  const ep_status code = device_->ops.stream_import(device_->handle, &desc, &handle, &error);
  if (code != EP_STATUS_OK) return provider_error(device_, code, error, "importing a stream");
  Result<Stream*> stream = enlist(handle);
  if (!stream.ok()) device_->ops.stream_destroy(device_->handle, handle);
  return stream;
}

Result<ep_stream*> DeviceQueue::recorder() {
  if (recorder_ != nullptr) return recorder_;
  std::lock_guard right(right_);
  const ep_stream_desc desc{sizeof desc, EP_STRUCT_STREAM_DESC, nullptr, EP_STREAM_COMPUTE, 0, 0};
  ep_error* error = nullptr;
  const ep_status code = device_->ops.stream_create(device_->handle, &desc, &recorder_, &error);
  if (code != EP_STATUS_OK) return provider_error(device_, code, error, "creating a stream");
  return recorder_;
}

Result<Stream*> DeviceQueue::add_host_stream() {
  std::lock_guard right(right_);
  return enlist(nullptr);
}

Result<Stream*> DeviceQueue::enlist(ep_stream* handle) {
  const uint16_t index = stream_count_.load(std::memory_order_relaxed);
  if (index == streams_.size()) {
    return Status(Code::invalid_argument, fmt::format("{} has {} streams already; more than that are not supported.",
                                                      device_->opened->spelling, index));
  }
  if (Stream* stream = take_stream(handle, index)) return stream;
  return Status(Code::invalid_argument,
                fmt::format("The process has {} streams already; more are not supported.", Engine::kMaxStreams));
}

Stream& DeviceQueue::download_stream() {
  if (Stream* own = downloads_.load(std::memory_order_acquire)) return *own;
  Stream& uploads = upload_stream();
  if (uploads.done(uploads.submitted.load(std::memory_order_acquire))) return uploads;
  std::lock_guard lock(making_streams_);
  if (downloads_.load(std::memory_order_relaxed) == nullptr && !downloads_refused_) {
    const Result<Stream*> made = add_stream(EP_STREAM_COPY, 0);
    downloads_refused_ = !made.ok();
    if (made.ok()) downloads_.store(made.value(), std::memory_order_release);
  }
  Stream* own = downloads_.load(std::memory_order_relaxed);
  return own != nullptr ? *own : uploads;
}

Result<Stream*> DeviceQueue::host_stream() {
  if (Stream* made = host_stream_.load(std::memory_order_acquire)) return made;
  std::lock_guard lock(making_streams_);
  if (Stream* made = host_stream_.load(std::memory_order_relaxed)) return made;
  TENON_ASSIGN_OR_RETURN(Stream * stream, add_host_stream());
  host_stream_.store(stream, std::memory_order_release);
  return stream;
}

// Launches and retires until nothing is ready or about `budget` instructions were launched. True if it did anything.
bool DeviceQueue::progress(uint64_t budget) {
  bool any = false;
  for (bool moved = true; moved;) {
    moved = launch_round(std::min(budget, kLaunchBatch));
    for (uint16_t i = 0; i < stream_count(); ++i) {
      Stream& stream = *streams_[i];
      if (stream.retired.load(std::memory_order_relaxed) == stream.launched.load(std::memory_order_relaxed)) continue;
      const bool seen = observe(stream);
      moved = retire_ready(stream) || seen || moved;
    }
    any = any || moved;
    if (budget <= kLaunchBatch) return any;
    budget -= kLaunchBatch;
  }
  return any;
}

// Launches until no stream can continue or `budget` instructions were launched. In a chain that alternates between
// streams each launch makes the next instruction ready; marks are checked once for many launches. True if it launched
// anything.
bool DeviceQueue::launch_round(uint64_t budget) {
  const uint64_t all = budget;
  for (bool moved = true; moved && budget != 0;) {
    moved = false;
    for (uint16_t i = 0; i < stream_count(); ++i) {
      Stream& stream = *streams_[i];
      if (stream.launched.load(std::memory_order_relaxed) == stream.submitted.load(std::memory_order_acquire)) continue;
      const uint64_t launched = launch_ready(stream, budget);
      moved = moved || launched != 0;
      budget -= launched;
    }
  }
  return budget != all;
}

// A number that changes with each submission and each end of a function.
uint64_t DeviceQueue::news() {
  uint64_t sum = host_ends_.load(std::memory_order_seq_cst);
  for (uint16_t i = 0; i < stream_count(); ++i) sum += streams_[i]->submitted.load(std::memory_order_seq_cst);
  return sum;
}

bool DeviceQueue::outstanding() {
  for (uint16_t i = 0; i < stream_count(); ++i) {
    if (streams_[i]->retired.load(std::memory_order_relaxed) !=
        streams_[i]->submitted.load(std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

std::string DeviceQueue::pending_text() {
  std::lock_guard right(right_);
  std::string text;
  for (uint16_t i = 0; i < stream_count(); ++i) {
    Stream& stream = *streams_[i];
    const uint64_t retired = stream.retired.load(std::memory_order_relaxed);
    const uint64_t submitted = stream.submitted.load(std::memory_order_acquire);
    const uint64_t launched = stream.launched.load(std::memory_order_relaxed);
    if (retired == submitted) continue;
    text += fmt::format("; {} stream {}: instruction {} ({}) is {}, {} more behind it", device_->opened->spelling, i,
                        retired + 1, stream.slot(retired + 1).op->op, launched > retired ? "launched" : "queued",
                        submitted - retired - 1);
    if (launched == submitted) continue;
    for (Ticket ticket : stream.slot(launched + 1).deps) {
      if (is_done(ticket)) continue;
      text += fmt::format(", instruction {} waits for instruction {} of {} stream {}", launched + 1, ticket.number(),
                          engine().stream(ticket).queue->device()->opened->spelling, engine().stream(ticket).index);
    }
  }
  return text.empty() ? "nothing is pending" : text.substr(2);
}

bool is_idle(const DeviceState* device) {
  if (device->synchronous) return true;
  DeviceQueue& queue = *device->queue;
  for (uint16_t i = 0; i < queue.stream_count(); ++i) {
    const Stream& stream = queue.stream(i);
    const uint64_t retired = stream.retired.load(std::memory_order_acquire);
    if (retired != stream.submitted.load(std::memory_order_acquire)) return false;
  }
  return true;
}

}  // namespace tenon::vm
