// The plug-in, the device, its memory, streams and events. See README.md.
#include "tests/fakes/mirror/device.h"
#include "tests/fakes/mirror/layouts.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "primitives/accuracy/accuracy.h"

EP_PLUGIN_NOTE("mirror", "0.1.0", 0)

namespace tenon::mirror {
namespace {

using provider::check_memory_import;
using provider::descriptor_of;
using provider::destroy;
using provider::entry;
using provider::fail;
using provider::fail_text;
using provider::fill;
using provider::handle_bit;
using provider::make;
using provider::object_of;
using provider::to_ep_string;
using provider::to_view;

constexpr uint64_t alignment = 256;

// --- memory ---

ep_status no_room(ep_device* device, uint64_t size, ep_memory** out_memory, ep_error** error) {
  if (device->breaks("writes_on_error")) *out_memory = nullptr;
  if (device->breaks("no_status")) return 77;
  return fail(device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "There is no room for %llu bytes.",
              static_cast<unsigned long long>(size));
}

ep_status memory_allocate(ep_device* device, uint32_t, uint64_t size, ep_memory** out_memory, ep_error** error) {
  const ep_host* host = device->host;
  if (device->breaks("promises_room")) size = std::min<uint64_t>(size, 1 << 26);
  if (size > uint64_t{1} << 40) return no_room(device, size, out_memory, error);
  if (device->breaks("empty_key"))
    host->blob_get(
        host, {nullptr, 0}, [](void*, const void*, uint64_t) {}, nullptr);
  if (device->breaks("bad_alignment")) host->release(host, host->allocate(host, 64, 3), 64);
  if (device->breaks("error_on_success") && error != nullptr) {
    *error = host->error_make(host, EP_STATUS_INTERNAL, to_ep_string("All is well."), {});
  }
  auto* memory = make<ep_memory>(host, host);
  const uint64_t whole = (size + 2 * alignment - 1) / alignment * alignment;
  memory->address = static_cast<char*>(std::aligned_alloc(alignment, whole));
  if (memory->address == nullptr) {
    destroy(memory);
    return no_room(device, size, out_memory, error);
  }
  std::memset(memory->address, 0x3c, whole);
  if (device->breaks("unaligned")) memory->address += 8;
  memory->size = size;
  *out_memory = memory;
  return EP_STATUS_OK;
}

// entry<> is an exception barrier. This function breaks the rule, so it has none.
ep_status memory_allocate_throwing(ep_device*, uint32_t, uint64_t, ep_memory**, ep_error**) {
  throw std::runtime_error("the allocation went wrong");
}

ep_status memory_allocate_without_host_memory(ep_device* device, uint32_t pool, uint64_t size, ep_memory** out_memory,
                                              ep_error** error) try {
  return memory_allocate(device, pool, size, out_memory, error);
} catch (...) {
  return fail_text(device->host, error, EP_STATUS_INTERNAL, "Something went wrong.");
}

void memory_free(ep_device* device, ep_memory* memory) noexcept {
  if (device->breaks("null_crashes")) *static_cast<volatile char*>(memory->address) = 0;
  if (memory == nullptr) return;
  const bool clears = device->breaks("clears_import") || device->breaks("clears_handle");
  if (memory->imported && clears) std::memset(memory->address, 0, memory->size);
  if (!memory->imported) std::free(memory->address - (device->breaks("unaligned") ? 8 : 0));
  if (device->breaks("leaks")) return;
  if (device->breaks("releases_other")) return device->host->release(device->host, memory, sizeof(*memory) + 1);
  destroy(memory);
}

ep_status memory_map(ep_device* device, ep_memory* memory, void** out_pointer, ep_error**) {
  *out_pointer = memory->address;
  if (!device->breaks("remaps")) return EP_STATUS_OK;
  static std::deque<std::vector<char>> copies;
  *out_pointer = copies.emplace_back(memory->address, memory->address + memory->size).data();
  return EP_STATUS_OK;
}

ep_status memory_import_host(ep_device* device, void* pointer, uint64_t size, ep_memory** out_memory, ep_error**) {
  auto* memory = make<ep_memory>(device->host, device->host);
  memory->address = static_cast<char*>(pointer);
  memory->size = size;
  memory->imported = true;
  *out_memory = memory;
  return EP_STATUS_OK;
}

// --- memory of other APIs: blocks by address, memory files ---

uint64_t taken_handles(const Character& character) {
  const bool takes = character.is("mapped") || character.breaks("no_import");
  return takes ? handle_bit(EP_HANDLE_CUDA_POINTER) | handle_bit(EP_HANDLE_OPAQUE_FD) : 0;
}

ep_status check_import(ep_device* device, const ep_import_desc& given, ep_error** error) {
  ep_import_desc desc = given;
  if (device->breaks("any_handle") && (taken_handles(device->character) >> desc.handle_type & 1) == 0)
    return EP_STATUS_OK;
  if (device->breaks("names_nothing") && static_cast<int64_t>(desc.handle) <= 0) return EP_STATUS_OK;
  if (device->breaks("any_uuid")) std::fill_n(desc.uuid, sizeof desc.uuid, uint8_t{0});
  const uint8_t none[16] = {};
  return check_memory_import(device->host, desc, {"the mirror", "memory", taken_handles(device->character), none},
                             error);
}

ep_status memory_import(ep_device* device, const ep_import_desc* desc, ep_memory** out_memory, ep_error** error) {
  if (const ep_status status = check_import(device, *desc, error); status != EP_STATUS_OK) {
    if (desc->handle_type == EP_HANDLE_OPAQUE_FD && device->breaks("takes_descriptor"))
      close(descriptor_of(desc->handle));
    if (desc->handle_type == EP_HANDLE_OPAQUE_FD && device->breaks("leaks_descriptor"))
      dup(descriptor_of(desc->handle));
    return status;
  }
  auto* memory = make<ep_memory>(device->host, device->host);
  memory->size = desc->size;
  memory->imported = true;
  memory->address = object_of<char>(desc->handle);
  if (desc->handle_type == EP_HANDLE_OPAQUE_FD) {
    memory->file = fakes::Foreign::open(descriptor_of(desc->handle), desc->size);
    memory->address = memory->file.data();
  }
  if (device->breaks("imports_copy")) {
    memory->copy.assign(memory->address, memory->address + memory->size);
    memory->address = memory->copy.data();
  }
  *out_memory = memory;
  return EP_STATUS_OK;
}

ep_status memory_native_handle(ep_device*, ep_memory* memory, uint64_t* out_handle, ep_error**) {
  *out_handle = reinterpret_cast<uintptr_t>(memory->address);
  return EP_STATUS_OK;
}

// --- streams and transfers ---

ep_status stream_create(ep_device* device, const ep_stream_desc* desc, ep_stream** out_stream, ep_error** error) {
  if (device->breaks("one_purpose") && desc->purpose != EP_STREAM_COMPUTE) {
    return fail(device->host, error, EP_STATUS_UNSUPPORTED, "There are no streams of purpose %d.", desc->purpose);
  }
  auto* stream = make<ep_stream>(device->host, device->host);
  stream->device = device;
  stream->queue = std::make_shared<Queue>();
  stream->queue->mutex = &device->mutex;
  stream->timed = (desc->flags & EP_STREAM_FLAG_TIMED) != 0;
  const std::lock_guard lock(device->mutex);
  device->queues.push_back(stream->queue);
  *out_stream = stream;
  return EP_STATUS_OK;
}

void stream_destroy(ep_device*, ep_stream* stream) noexcept {
  if (stream != nullptr) stream->queue->stream_gone = true;
  destroy(stream);
}

// A wait that gives up early. The work continues and ends a little later.
ep_status give_up(const ep_device* device, std::shared_ptr<Queue> queue, ep_error** error) {
  std::thread([queue = std::move(queue)] {
    usleep(3000);
    const std::lock_guard lock(*queue->mutex);
    queue->run_to(queue->submitted);
  }).detach();
  return fail_text(device->host, error, EP_STATUS_INTERNAL, "The queue does not answer.");
}

ep_status stream_synchronize(ep_stream* stream, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  const ep_device* device = stream->device;
  if (device->breaks("no_synchronize") || device->breaks("waits_fail")) return give_up(device, stream->queue, error);
  stream->finish();
  return EP_STATUS_OK;
}

ep_status stream_take_fault(ep_stream* stream, ep_fault* out_fault, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  const std::lock_guard lock(stream->device->mutex);
  std::deque<ep_fault>& faults = stream->queue->faults;
  if (faults.empty() && stream->device->breaks("fault_from_nowhere")) return EP_STATUS_OK;
  if (faults.empty() && stream->device->breaks("writes_no_fault")) *out_fault = {};
  if (faults.empty()) return fail_text(stream->host, error, EP_STATUS_NOT_FOUND, "There is no fault.");
  *out_fault = faults.front();
  if (stream->device->breaks("endless_faults")) return EP_STATUS_OK;
  faults.pop_front();
  return EP_STATUS_OK;
}

ep_status move_bytes(ep_stream* stream, void* dst, const void* src, uint64_t size, ep_error** error) {
  const ep_device* device = stream->device;
  if (device->breaks("thread_bound") && std::this_thread::get_id() != device->opener) {
    return fail_text(stream->host, error, EP_STATUS_INTERNAL, "The device is not current on this thread.");
  }
  stream->submit([=] { std::memcpy(dst, src, size); });
  return EP_STATUS_OK;
}

ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error** error) {
  const uint64_t room = std::min(dst.memory->size - dst.offset, src.memory->size - src.offset);
  if (stream->device->breaks("copy_from_start")) src.offset = 0;
  if (stream->device->breaks("copy_to_start")) dst.offset = 0;
  if (stream->device->breaks("one_byte_more")) size = std::min(size + 1, room);
  if (stream->device->breaks("one_byte_less")) size -= 1;
  if (stream->device->breaks("rounds_copies")) size = std::min(size / 8 * 8 + 8, dst.memory->size - dst.offset);
  if (stream->recording != nullptr) {
    stream->recording->calls.push_back([=](const Places& places, std::vector<ep_fault>*) {
      std::memcpy(places(address_of(dst)), places(address_of(src)), size);
    });
    if (!stream->device->breaks("list_runs")) return EP_STATUS_OK;
  }
  return move_bytes(stream, address_of(dst), address_of(src), size, error);
}
ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error** error) {
  if (stream->recording != nullptr && !stream->device->breaks("list_takes_uploads")) return EP_STATUS_BUSY;
  if (stream->device->breaks("upload_offset")) dst.offset = 0;
  if (stream->device->breaks("uploads_at_once")) {
    std::memcpy(address_of(dst), src, size);
    return EP_STATUS_OK;
  }
  return move_bytes(stream, address_of(dst), src, size, error);
}
ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (stream->device->breaks("download_offset")) src.offset = 0;
  return move_bytes(stream, dst, address_of(src), size, error);
}

ep_status peer_open(ep_device* device, ep_device*, ep_error** error) {
  if (device->breaks("odd_peers")) return fail_text(device->host, error, EP_STATUS_INTERNAL, "There is no way.");
  return EP_STATUS_OK;
}
ep_status peer_copy(ep_stream* stream, ep_buffer dst, ep_device*, ep_buffer src, uint64_t size, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (stream->device->breaks("peer_offset")) src.offset = 0;
  if (stream->device->breaks("peer_at_once")) {
    std::memcpy(address_of(dst), address_of(src), size);
    return EP_STATUS_OK;
  }
  return move_bytes(stream, address_of(dst), address_of(src), size, error);
}

// --- events ---

ep_status event_create(ep_device* device, ep_event** out_event, ep_error**) {
  *out_event = make<ep_event>(device->host, device->host);
  (*out_event)->device = device;
  return EP_STATUS_OK;
}
void event_destroy(ep_device*, ep_event* event) noexcept { destroy(event); }

uint64_t now_ns() { return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()); }

ep_status event_record(ep_event* event, ep_stream* stream, ep_error**) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (stream->timed && !(event->time != nullptr && event->device->breaks("first_time_stays"))) {
    event->time = std::make_shared<uint64_t>(0);
    stream->submit([time = event->time] { *time = now_ns(); });
  }
  if (!stream->timed) event->time = nullptr;
  const std::lock_guard lock(event->device->mutex);
  event->queue = stream->queue;
  event->point = stream->queue->submitted;
  return EP_STATUS_OK;
}

ep_status event_host_wait(ep_event* event, uint64_t, ep_error** error) {
  if (event->queue == nullptr) {
    if (event->device->breaks("never_recorded_ok")) return EP_STATUS_OK;
    return fail_text(event->host, error, EP_STATUS_INVALID_ARGUMENT, "The event was never recorded.");
  }
  if (event->queue->stream_gone && event->device->breaks("event_of_stream")) {
    return fail_text(event->host, error, EP_STATUS_INTERNAL, "The stream of the event is gone.");
  }
  if (event->device->breaks("early")) return EP_STATUS_OK;
  if (event->device->breaks("waits_fail")) return give_up(event->device, event->queue, error);
  if (event->device->breaks("no_host_wait")) {
    return fail_text(event->host, error, EP_STATUS_INTERNAL, "There is no such wait.");
  }
  const std::lock_guard lock(event->device->mutex);
  event->queue->run_to(event->point);
  return EP_STATUS_OK;
}

ep_status event_query(ep_event* event, ep_error** error) {
  if (event->queue != nullptr && event->device->breaks("no_flush")) return EP_STATUS_BUSY;
  return event_host_wait(event, 0, error);
}

ep_status stream_wait_event(ep_stream* stream, ep_event* event, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (event->queue == nullptr) return event_host_wait(event, 0, error);
  if (event->device->breaks("ignores_waits")) return EP_STATUS_OK;
  if (event->queue->stream_gone && event->device->breaks("wait_of_stream")) {
    return fail_text(event->host, error, EP_STATUS_INVALID_ARGUMENT, "The stream of the event is gone.");
  }
  stream->submit([queue = event->queue, point = event->point] { queue->run_to(point); });
  return EP_STATUS_OK;
}

ep_status event_elapsed(ep_event* begin, ep_event* end, uint64_t* out_ns, ep_error** error) {
  for (ep_event* event : {begin, end}) {
    if (event->time == nullptr && event->device->breaks("times_anything")) return *out_ns = 0, EP_STATUS_OK;
    if (event->time == nullptr) {
      return fail_text(event->host, error, EP_STATUS_INVALID_ARGUMENT, "The event has no time.");
    }
    const std::lock_guard lock(event->device->mutex);
    if (event->queue->completed < event->point) return EP_STATUS_BUSY;
  }
  *out_ns = (*end->time - *begin->time) / (begin->device->breaks("microseconds") ? 1000 : 1);
  return EP_STATUS_OK;
}

// --- the device and the plug-in ---

void device_close(ep_device* device) noexcept { destroy(device); }

void shutdown(ep_plugin* plugin) noexcept {
  if (plugin->thread.joinable()) plugin->thread.join();
  destroy(plugin);
}

// entry<> sets the default floating-point state. The work of a stream runs in these functions, here without it.
void fill_with_callers_state(ep_device_ops* ops) {
  ops->stream_synchronize = stream_synchronize;
  ops->event_query = event_query;
  ops->event_host_wait = event_host_wait;
}

uint32_t devices_of(const Character& character) { return character.is("peers") ? 2 : 1; }

ep_status device_count(ep_plugin* plugin, uint32_t* out_count, ep_error**) {
  while (plugin->character.breaks("hangs")) pause();
  *out_count = devices_of(plugin->character);
  return EP_STATUS_OK;
}

ep_status no_device(ep_plugin* plugin, uint32_t index, ep_error** error) {
  if (plugin->character.breaks("wrong_code")) return fail_text(plugin->host, error, EP_STATUS_INTERNAL, "No.");
  if (plugin->character.breaks("own_error") && error != nullptr) {
    static long mine[16];
    *error = reinterpret_cast<ep_error*>(mine);
    return EP_STATUS_NOT_FOUND;
  }
  return fail(plugin->host, error, EP_STATUS_NOT_FOUND, "There is no device %u.", index);
}

void state_accuracy(const Character& character, ep_device_info* info) {
  const bool portable =
      character.is("portable") || character.breaks("beyond_portable") || character.breaks("keeps_no_demand");
  if (portable || character.breaks("two_tiers")) info->portable_dtypes = floating_dtypes();
  if (character.is("relaxed") || character.breaks("two_tiers")) info->relaxed_dtypes = floating_dtypes();
  if (character.is("flushes")) info->flushed_dtypes = floating_dtypes();
}

ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out_info, ep_error** error) {
  const Character& character = plugin->character;
  if (index >= devices_of(character) && !character.breaks("unknown_device")) return no_device(plugin, index, error);
  ep_device_info info{};
  info.name = to_ep_string("Mirror");
  if (character.breaks("other_name_later") && plugin->described++ % 2 == 1) info.name = to_ep_string("Somebody else");
  info.fingerprint = to_ep_string("mirror");
  info.device_class = EP_DEVICE_CLASS_SOFTWARE;
  if (!character.is("async")) info.flags = EP_DEVICE_FLAG_SYNCHRONOUS;
  info.dtypes = ~uint64_t{0};
  state_accuracy(character, &info);
  std::fill_n(info.pci, 4, -1);
  info.pool_count = character.breaks("no_pools") ? 0 : 1;
  if (character.is("mapped")) info.pools[0].flags = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT;
  info.pools[0].minimum_alignment = alignment;
  info.memory_handles = taken_handles(character);
  info.native_memory = EP_HANDLE_CUDA_POINTER;
  const uint32_t size = out_info->struct_size;
  if (character.breaks("short_fill")) out_info->struct_size = sizeof info;
  fill(out_info, info);
  if (character.breaks("long_fill") && size > sizeof info) reinterpret_cast<char*>(out_info)[sizeof info] = 1;
  return EP_STATUS_OK;
}

ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out_ops,
                      ep_error** error) {
  const Character& character = plugin->character;
  if (index >= devices_of(character) && !character.breaks("unknown_device")) return no_device(plugin, index, error);
  if (character.breaks("trusts_any_blob")) {
    const auto take = [](void* found, const void*, uint64_t) { *static_cast<bool*>(found) = true; };
    bool found = false;
    static_cast<void>(plugin->host->blob_get(plugin->host, to_ep_string("state"), take, &found));
    if (found) return fail_text(plugin->host, error, EP_STATUS_INTERNAL, "An earlier life ended badly.");
    plugin->host->blob_put(plugin->host, to_ep_string("state"), "bad", 3);
  }
  auto* device = make<ep_device>(plugin->host, plugin->host);
  device->character = character;
  device->opener = std::this_thread::get_id();
  if (character.breaks("prints")) std::printf("the mirror is open\n");
  ep_device_ops ops{};
  ops.device_close = device_close;
  fill_memory(&ops);
  if (!character.is("mapped")) ops.memory_map = nullptr, ops.memory_import_host = nullptr;
  if (!character.is("mapped") || character.breaks("no_import")) ops.memory_import = nullptr;
  if (character.breaks("throws")) ops.memory_allocate = memory_allocate_throwing;
  if (character.breaks("no_host_memory")) ops.memory_allocate = memory_allocate_without_host_memory;
  fill_stream(&ops);
  if (!character.is("peers")) ops.peer_open = nullptr, ops.peer_copy = nullptr;
  fill_primitive(&ops);
  if (character.breaks("callers_rounding")) fill_with_callers_state(&ops);
  if (character.is("graphs")) fill_graph(&ops);
  if (character.is("async")) fill_lists(&ops);
  if (character.is("layouts")) fill_layouts(&ops);
  if (character.is("modules")) fill_modules(&ops);
  fill(out_ops, ops);
  *out_device = device;
  return EP_STATUS_OK;
}

std::string setting(const ep_host* host, const char* key) {
  ep_string value{};
  const bool set = host->config_get(host, to_ep_string(key), &value) == EP_STATUS_OK;
  return set ? std::string(to_view(value)) : std::string();
}

bool is_violation(const std::string& name) {
#define VIOLATION(violation, rule, outcome, test, what) \
  if (name == #violation) return true;
#define DECLINED(violation, rule, code, what) \
  if (name == #violation) return true;
#include "tests/fakes/mirror/violations.def"
#undef DECLINED
#undef VIOLATION
  return name.empty();
}

ep_status query(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  Character character = {fmt::format(",{},", setting(host, "mode")), setting(host, "break"),
                         Off::parse(setting(host, "off"))};
  if (!is_violation(character.broken)) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "violations.def has no '%s'.", character.broken.c_str());
  }
  if (!character.breaks("any_version")) {
    if (const ep_status status = provider::negotiate(host, out_ops, error); status != EP_STATUS_OK) return status;
  }
  if (character.breaks("no_newer_host") && host->struct_size != sizeof(ep_host)) {
    return fail_text(host, error, EP_STATUS_VERSION, "The host is not mine.");
  }
  auto* plugin = make<ep_plugin>(host, host);
  if (character.breaks("query_thread")) plugin->thread = std::thread([] { usleep(100000); });
  plugin->character = std::move(character);
  ep_plugin_ops ops{};
  ops.abi_major = EP_ABI_MAJOR;
  ops.abi_minor = EP_ABI_MINOR;
  ops.plugin = plugin;
  ops.shutdown = shutdown;
  ops.device_count = entry<device_count>;
  ops.device_info = entry<device_info>;
  ops.device_open = entry<device_open>;
  fill(out_ops, ops);
  if (plugin->character.breaks("table_type")) out_ops->struct_type = EP_STRUCT_HOST;
  if (plugin->character.breaks("long_tail")) {
    out_ops->struct_size = sizeof ops + 8;
    reinterpret_cast<char*>(out_ops)[sizeof ops] = 1;  // the loader's struct is larger than it says
  }
  return EP_STATUS_OK;
}

}  // namespace

void fill_memory(ep_device_ops* ops) {
  ops->memory_allocate = entry<memory_allocate>;
  ops->memory_free = memory_free;
  ops->memory_map = entry<memory_map>;
  ops->memory_import_host = entry<memory_import_host>;
  ops->memory_import = entry<memory_import>;
  ops->memory_native_handle = entry<memory_native_handle>;
}

void fill_stream(ep_device_ops* ops) {
  ops->stream_create = entry<stream_create>;
  ops->stream_destroy = stream_destroy;
  ops->stream_synchronize = entry<stream_synchronize>;
  ops->stream_take_fault = entry<stream_take_fault>;
  ops->copy = entry<copy>;
  ops->upload = entry<upload>;
  ops->download = entry<download>;
  ops->peer_open = entry<peer_open>;
  ops->peer_copy = entry<peer_copy>;
  ops->event_create = entry<event_create>;
  ops->event_destroy = event_destroy;
  ops->event_record = entry<event_record>;
  ops->event_query = entry<event_query>;
  ops->event_host_wait = entry<event_host_wait>;
  ops->stream_wait_event = entry<stream_wait_event>;
  ops->event_elapsed = entry<event_elapsed>;
}

}  // namespace tenon::mirror

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) try {
  return tenon::mirror::query(host, out_ops, error);
} catch (...) {
  return tenon::provider::caught(host, error);
}
