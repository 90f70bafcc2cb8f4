// DeviceQueue: its streams, and one round of launching and retiring under the launch right.
#include <algorithm>

#include "core/vm/engine.h"

namespace tenon::vm {
namespace {

constexpr uint64_t kLaunchBatch = 64;  // instructions of one stream before the next stream gets its turn

}  // namespace

Status provider_error(const DeviceState* device, ep_status code, ep_error* error, std::string_view doing) {
  return loader::take_error(code, error, std::string(doing) + " on " + device->opened->spelling);
}

Result<Stream*> DeviceQueue::add_stream() {
  std::lock_guard right(right_);
  const uint16_t index = stream_count_.load(std::memory_order_relaxed);
  if (index == streams_.size()) {
    return Status(Code::invalid_argument, device_->opened->spelling + " has " + std::to_string(index) +
                                              " streams already; more than that are not supported.");
  }
  ep_stream* handle = nullptr;
  ep_error* error = nullptr;
  const ep_status code = device_->ops.stream_create(device_->handle, &handle, &error);
  if (code != EP_STATUS_OK) return provider_error(device_, code, error, "creating a stream");
  if (Stream* stream = take_stream(handle, index)) return stream;
  device_->ops.stream_destroy(device_->handle, handle);
  return Status(Code::invalid_argument,
                "The process has " + std::to_string(Engine::kMaxStreams) + " streams already; more are not supported.");
}

// Launches and retires until nothing moves or about `budget` instructions were launched. True if anything moved.
bool DeviceQueue::progress(uint64_t budget) {
  bool any = false;
  for (bool moved = true; moved;) {
    moved = false;
    for (uint16_t i = 0; i < stream_count(); ++i) {
      Stream& stream = *streams_[i];
      if (stream.launched.load(std::memory_order_relaxed) != stream.submitted.load(std::memory_order_acquire)) {
        moved = launch_ready(stream, std::min(budget, kLaunchBatch)) || moved;
      }
      if (stream.retired.load(std::memory_order_relaxed) != stream.launched.load(std::memory_order_relaxed)) {
        const bool seen = observe(stream);
        moved = retire_ready(stream) || seen || moved;
      }
    }
    any = any || moved;
    if (budget <= kLaunchBatch) return any;
    budget -= kLaunchBatch;
  }
  return any;
}

uint64_t DeviceQueue::submissions() {
  uint64_t sum = 0;
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
    text += "; " + device_->opened->spelling + " stream " + std::to_string(i) + ": instruction " +
            std::to_string(retired + 1) + " (" + std::string(stream.slot(retired + 1).op) + ") is " +
            (launched > retired ? "launched" : "queued") + ", " + std::to_string(submitted - retired - 1) +
            " more behind it";
    if (launched == submitted) continue;
    for (Ticket ticket : stream.slot(launched + 1).deps) {
      if (is_done(ticket)) continue;
      text += ", instruction " + std::to_string(launched + 1) + " waits for instruction " +
              std::to_string(ticket.number()) + " of " + engine().stream(ticket).queue->device()->opened->spelling +
              " stream " + std::to_string(engine().stream(ticket).index);
    }
  }
  return text.empty() ? "nothing is pending" : text.substr(2);
}

}  // namespace tenon::vm
