// skeleton: a complete asynchronous Tenon provider, for a device with queues (a GPU, an NPU). Use it as the start of
// your own.
//
// It works as it is: its "device" is a thread per stream, and its "device memory" is host memory that the host does not
// access. A comment with YOUR API marks code to replace by calls of your device's library. ep_api/ep_api.h is the
// contract: it describes each function below that has the name of a slot. ep_api/README.md has the numbered rules (such
// as S05), and `tenon conform` checks them.
//
// entry<f> wraps f for the host: it converts exceptions to errors, and f runs with the default floating-point state.
#include "skeleton.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "sdk/provider/plugin.h"

// The loader reads this note (name, version, ABI) from the file before it runs any of our code. Flags 0: the library is
// never unloaded, since we start threads.
EP_PLUGIN_NOTE("skeleton", "1.0.0", 0)

using namespace tenon::provider;

// ---- Timelines and streams: the work on the device. ----

bool Timeline::reached(uint64_t number) {
  const std::lock_guard lock(mutex_);
  return done_ >= number;
}

void Timeline::wait(uint64_t number) {
  std::unique_lock lock(mutex_);
  advanced_.wait(lock, [&] { return done_ >= number; });
}

// YOUR API: a wait with a timeout. If the device can only be polled, use poll_until of sdk/provider/polling.h.
bool Timeline::wait_for(uint64_t number, uint64_t timeout_ns) {
  constexpr uint64_t a_year_ns = 365ull * 24 * 3600 * 1'000'000'000;  // the clock overflows after some centuries
  if (timeout_ns >= a_year_ns) return wait(number), true;
  std::unique_lock lock(mutex_);
  return advanced_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [&] { return done_ >= number; });
}

void Timeline::advance() {
  const std::lock_guard lock(mutex_);
  ++done_;
  advanced_.notify_all();
}

// YOUR API: create a queue. EP_STREAM_COPY asks for a copy engine, and desc.priority for a more or less urgent queue.
// Both are hints, which a device may ignore. Here the purpose names the thread.
ep_stream::ep_stream(ep_device* of, const ep_stream_desc& desc)
    : device(of), copies_(desc.purpose == EP_STREAM_COPY), worker_([this] { run(); }) {}

// The host has synchronised the stream, so the queue is empty and the thread ends immediately.
ep_stream::~ep_stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_one();
  }
  worker_.join();
}

void ep_stream::submit(Command command) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(command));
  ++submitted_;
  changed_.notify_one();
}

Point ep_stream::last() {
  const std::lock_guard lock(mutex_);
  return {timeline_, submitted_};
}

bool ep_stream::next(Command* out_command) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
  if (queue_.empty()) return false;
  *out_command = std::move(queue_.front());
  queue_.pop_front();
  return true;
}

// The worker thread. It holds the default floating-point state itself, since a thread inherits the state of the thread
// that started it (rule C02).
void ep_stream::run() {
  const DefaultFloatingPoint floating_point;
  pthread_setname_np(pthread_self(), copies_ ? "tenon copies" : "tenon stream");
  for (Command command; next(&command);) {
    // YOUR API: a command throws if its call fails for any reason. Its outputs are then unknown, and the device is
    // lost. Bad data that a kernel can name is not a failure but a fault, and later work runs.
    try {
      if (!device->lost) command();
    } catch (...) {
      device->lost = true;
    }
    command = nullptr;  // frees its resources before others see that it is done
    timeline_->advance();
  }
}

// One fault per launch is enough: the host reports the first. The worker runs launches in order, so faults come in
// launch order (rule F01). YOUR API: kernels write faults into a buffer in device memory, which this reads back.
void ep_stream::report(const ep_fault& fault) {
  const std::lock_guard lock(mutex_);
  if (faults_.size() < most_faults) {
    faults_.push_back(fault);
  } else {
    faults_.back().flags |= EP_FAULT_FLAG_OVERFLOW;
  }
}

bool ep_stream::take_fault(ep_fault* out_fault) {
  const std::lock_guard lock(mutex_);
  if (faults_.empty()) return false;
  *out_fault = faults_.front();
  faults_.pop_front();
  return true;
}

ep_status check_not_lost(const ep_device& device, ep_error** error) {
  if (!device.lost) return EP_STATUS_OK;
  return fail(device.host, error, EP_STATUS_DEVICE_LOST,
              "Work on the device failed; the contents of its memory are unknown.");
}

namespace {

// ---- Memory. The host asks for few large blocks and divides them itself, so this can be simple. ----

constexpr uint64_t alignment = 64;  // alignment of blocks

ep_status memory_allocate(ep_device* device, uint32_t pool, uint64_t size, ep_memory** out_memory, ep_error** error) {
  if (pool != 0) {
    return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT, "The device has only pool 0; there is no pool %u.",
                pool);
  }
  ep_memory* memory = make<ep_memory>(device->host);
  const bool fits = size <= PTRDIFF_MAX - alignment;
  // YOUR API: allocate device memory.
  if (fits)
    memory->bytes = static_cast<char*>(std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment));
  if (memory->bytes == nullptr) {
    destroy(memory);
    return fail(device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "The device has no block of %llu bytes.",
                static_cast<unsigned long long>(size));
  }
  *out_memory = memory;
  return EP_STATUS_OK;
}

// No pending work uses `memory`, so this frees it immediately, without waiting (rule P13).
void memory_free(ep_device*, ep_memory* memory) noexcept {
  if (memory != nullptr) std::free(memory->bytes);
  destroy(memory);
}

// ---- Streams. ----

ep_status stream_create(ep_device* device, const ep_stream_desc* desc, ep_stream** out_stream, ep_error**) {
  *out_stream = make<ep_stream>(device->host, device, *desc);
  return EP_STATUS_OK;
}

void stream_destroy(ep_device*, ep_stream* stream) noexcept { destroy(stream); }

// Appends `command`, unless the device is lost. Every function that submits work calls this.
ep_status submit(ep_stream* stream, Command command, ep_error** error) {
  const ep_status status = check_not_lost(*stream->device, error);
  if (status == EP_STATUS_OK) stream->submit(std::move(command));
  return status;
}

ep_status stream_synchronize(ep_stream* stream, ep_error** error) {
  const Point point = stream->last();
  point.timeline->wait(point.number);
  return check_not_lost(*stream->device, error);
}

// Returns a fault that is already known. All faults of work before a seen event are known, since the worker reports a
// fault before it advances the timeline.
ep_status stream_take_fault(ep_stream* stream, ep_fault* out_fault, ep_error**) {
  return stream->take_fault(out_fault) ? EP_STATUS_OK : EP_STATUS_NOT_FOUND;
}

// ---- Transfers, in stream order. The host keeps both sides until it has seen an event recorded later. ----

// YOUR API: enqueue the transfer. If it needs pinned memory and the host's pointer is not pinned, use your own pinned
// buffer: `upload` copies to it during this call, `download` copies from it in a command after the transfer.
ep_status transfer(ep_stream* stream, void* dst, const void* src, uint64_t size, ep_error** error) {
  return submit(
      stream, [=] { std::memcpy(dst, src, size); }, error);
}

ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error** error) {
  return transfer(stream, address(dst), address(src), size, error);
}

ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error** error) {
  return transfer(stream, address(dst), src, size, error);
}

ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error** error) {
  return transfer(stream, dst, address(src), size, error);
}

// ---- Events. An event holds a point; recording replaces it. No other call overlaps a record of the event (C01). ----

ep_status event_create(ep_device* device, ep_event** out_event, ep_error**) {
  ep_event* event = make<ep_event>(device->host);
  event->device = device;
  *out_event = event;
  return EP_STATUS_OK;
}

void event_destroy(ep_device*, ep_event* event) noexcept { destroy(event); }

// YOUR API: record the API's event on its queue, or take the next number of its timeline semaphore. Does not flush.
ep_status event_record(ep_event* event, ep_stream* stream, ep_error** error) {
  const ep_status status = check_not_lost(*stream->device, error);
  if (status == EP_STATUS_OK) event->point = stream->last();
  return status;
}

ep_status check_recorded(const ep_event& event, ep_error** error) {
  if (event.point.timeline != nullptr) return EP_STATUS_OK;
  return fail(event.host, error, EP_STATUS_INVALID_ARGUMENT, "The event was never recorded.");
}

// YOUR API: query the event. If submitted work is still in a batch, submit the batch first: a recorded event must fire
// (S03). BUSY and TIMEOUT need no error text, since they are frequent and clear.
ep_status event_query(ep_event* event, ep_error** error) {
  if (const ep_status status = check_recorded(*event, error); status != EP_STATUS_OK) return status;
  if (const ep_status status = check_not_lost(*event->device, error); status != EP_STATUS_OK) return status;
  if (!event->point.timeline->reached(event->point.number)) return EP_STATUS_BUSY;
  return check_not_lost(*event->device, error);
}

// Check again if the device is lost: the work before the event may have lost it.
ep_status event_host_wait(ep_event* event, uint64_t timeout_ns, ep_error** error) {
  if (const ep_status status = check_recorded(*event, error); status != EP_STATUS_OK) return status;
  if (const ep_status status = check_not_lost(*event->device, error); status != EP_STATUS_OK) return status;
  if (!event->point.timeline->wait_for(event->point.number, timeout_ns)) return EP_STATUS_TIMEOUT;
  return check_not_lost(*event->device, error);
}

// The command keeps the current point of the event. A later record does not affect it (rule S05), and the event may be
// destroyed in the meantime. YOUR API: let the queue wait on the device, without blocking this thread.
ep_status stream_wait_event(ep_stream* stream, ep_event* event, ep_error** error) {
  if (const ep_status status = check_recorded(*event, error); status != EP_STATUS_OK) return status;
  return submit(
      stream, [point = event->point] { point.timeline->wait(point.number); }, error);
}

// ---- The device, the plug-in, and the only exported symbol. ----

// YOUR API: count devices. Without devices, return 0. A missing driver is an error with a remedy (fail_with_remedy).
ep_status device_count(ep_plugin*, uint32_t* out_count, ep_error**) {
  *out_count = 1;
  return EP_STATUS_OK;
}

// YOUR API: describe the device. These flags are for memory that the host cannot address. If it can (unified memory),
// add EP_POOL_FLAG_HOST_VISIBLE, and COHERENT if it applies, and fill memory_map: this saves the host copies.
ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out_info, ep_error** error) {
  if (const ep_status status = check_index(plugin->host, "skeleton", 1, index, error); status != EP_STATUS_OK)
    return status;
  ep_device_info info{};
  info.name = to_ep_string("Asynchronous device in host memory");
  info.fingerprint = to_ep_string("skeleton-1");  // what compiled code depends on: model, driver, library versions
  info.device_class = EP_DEVICE_CLASS_SOFTWARE;   // listed, used only on request; yours: DISCRETE, ACCELERATOR, ...
  info.dtypes = every_dtype;
  for (int64_t& part : info.pci) part = -1;
  info.pool_count = 1;
  info.pools[0].flags = EP_POOL_FLAG_DEVICE_LOCAL;
  info.pools[0].minimum_alignment = alignment;
  fill(out_info, info);
  return EP_STATUS_OK;
}

void device_close(ep_device* device) noexcept { destroy(device); }

// Slots that are not set are NULL, and the host works without them: stream_flush (submission is immediate), memory_map
// (no host address), peer copies, whole graphs.
ep_device_ops device_ops() {
  ep_device_ops ops{};
  ops.device_close = device_close;
  ops.memory_allocate = entry<memory_allocate>;
  ops.memory_free = memory_free;
  ops.stream_create = entry<stream_create>;
  ops.stream_destroy = stream_destroy;
  ops.stream_synchronize = entry<stream_synchronize>;
  ops.stream_take_fault = entry<stream_take_fault>;
  ops.copy = entry<copy>;
  ops.upload = entry<upload>;
  ops.download = entry<download>;
  ops.event_create = entry<event_create>;
  ops.event_destroy = event_destroy;
  ops.event_record = entry<event_record>;
  ops.event_query = entry<event_query>;
  ops.event_host_wait = entry<event_host_wait>;
  ops.stream_wait_event = entry<stream_wait_event>;
  fill_primitives(&ops);
  return ops;
}

// YOUR API: open the device and create its context.
ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out_ops,
                      ep_error** error) {
  if (const ep_status status = check_index(plugin->host, "skeleton", 1, index, error); status != EP_STATUS_OK)
    return status;
  *out_device = make<ep_device>(plugin->host);
  fill(out_ops, device_ops());
  return EP_STATUS_OK;
}

void fill_plugin(ep_plugin_ops* ops) {
  ops->device_count = entry<device_count>;
  ops->device_info = entry<device_info>;
  ops->device_open = entry<device_open>;
}

}  // namespace

// Accesses no hardware and starts no thread. Two calls make two plug-ins, so there are no globals.
ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return answer_query(host, out_ops, error, fill_plugin);
}
