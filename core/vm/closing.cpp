// Closes a device while the program continues. Its streams are kept for the next device.
#include <thread>
#include <utility>

#include "core/device/process.h"
#include "core/vm/engine.h"

namespace tenon::vm {

Stream* DeviceQueue::take_stream(ep_stream* handle, uint16_t index) {
  Engine& all = engine();
  std::lock_guard lock(all.submission);
  Stream* stream = nullptr;
  if (!all.idle_streams.empty()) {
    stream = all.idle_streams.back();
    all.idle_streams.pop_back();
  } else {
    const uint32_t id = all.stream_count.load(std::memory_order_relaxed) + 1;
    if (id >= Engine::kMaxStreams) return nullptr;
    stream = new Stream;
    stream->id = static_cast<uint16_t>(id);
    all.streams[id] = stream;
    all.stream_count.store(id, std::memory_order_release);
  }
  stream->queue = this;
  stream->handle = handle;
  stream->on_host = handle == nullptr;
  stream->host_done.store(stream->launched.load(std::memory_order_relaxed), std::memory_order_relaxed);
  stream->index = index;
  stream->complaints = 0;
  stream->failed_launch = 0;
  stream->marked = stream->completed = stream->launched.load(std::memory_order_relaxed);
  streams_[index] = stream;
  stream_count_.store(static_cast<uint16_t>(index + 1), std::memory_order_release);
  return stream;
}

void DeviceQueue::destroy_mark(EventMark* mark) {
  device_->ops.event_destroy(device_->handle, mark->handle);
  delete mark;
}

void DeviceQueue::close() {
  stop();
  std::unique_lock right(right_);
  for (; pinned_ != 0; right.lock()) {
    right.unlock();
    std::this_thread::yield();
  }
  for (uint16_t i = 0; i < stream_count(); ++i) {
    Stream& stream = *streams_[i];
    for (EventMark* mark : stream.events) destroy_mark(mark);
    stream.events.clear();
    stream.clean_scratch = 0;
    stream.times.reset();
    if (!stream.on_host) device_->ops.stream_destroy(device_->handle, stream.handle);
  }
  if (recorder_ != nullptr) device_->ops.stream_destroy(device_->handle, std::exchange(recorder_, nullptr));
  for (EventMark* mark : free_marks_) destroy_mark(mark);
  free_marks_.clear();
  staging.trim();
  downloads_.store(nullptr);
  host_stream_.store(nullptr);
  Engine& all = engine();
  std::lock_guard lock(all.submission);
  for (uint16_t i = 0; i < stream_count(); ++i) all.idle_streams.push_back(streams_[i]);
  stream_count_.store(0, std::memory_order_release);
  std::erase(all.queues, this);
}

Status drain_all() {
  std::vector<DeviceQueue*> queues;
  {
    std::lock_guard lock(engine().submission);
    queues = engine().queues;
  }
  for (DeviceQueue* queue : queues) {
    for (uint16_t i = 0; i < queue->stream_count(); ++i) {
      Stream& stream = queue->stream(i);
      TENON_RETURN_IF_ERROR(wait(stream.ticket(stream.submitted.load(std::memory_order_acquire))));
    }
  }
  return Status();
}

void trim_staging(DeviceState* device) {
  if (device->queue != nullptr) device->queue->staging.trim();
}

void release_scratch(DeviceState* device) {
  if (device->queue == nullptr) return;
  for (uint16_t i = 0; i < device->queue->stream_count(); ++i) {
    memory::Block block;
    {
      std::lock_guard lock(engine().submission);
      block = std::exchange(device->queue->stream(i).scratch, {});
    }
    if (block.memory != nullptr) device->allocator->release(block, {});
  }
}

void detach(DeviceState* device) {
  if (device->queue != nullptr) {
    device->queue->close();
    return;
  }
  if (device->inline_stream != nullptr) device->ops.stream_destroy(device->handle, device->inline_stream);
  device->inline_stream = nullptr;
}

}  // namespace tenon::vm
