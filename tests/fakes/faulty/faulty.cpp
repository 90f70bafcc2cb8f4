#include "tests/fakes/faulty/faulty.h"

#include <dlfcn.h>

#include <chrono>
#include <deque>
#include <memory>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tenon::fakes {
namespace {

// The host of the wrapped provider. Only the blobs differ from the real host's; their context is in the table.
struct Host {
  ep_host table;  // first, so that a pointer to it is also a pointer to the struct
  const ep_host* inner;
  Faulty* faulty;
};

const Host& of(const ep_host* host) { return *reinterpret_cast<const Host*>(host); }

bool forgets(Faulty& faulty) {
  const uint32_t one_in = faulty.forgetful;
  static std::atomic<uint64_t> calls{0};
  if (one_in == 0 || calls.fetch_add(1) % one_in != 0) return false;
  faulty.blobs_forgotten.fetch_add(1);
  return true;
}

ep_status blob_get(const ep_host* host, ep_string key, void (*take)(void*, const void*, uint64_t), void* context) {
  of(host).faulty->blobs_asked.fetch_add(1);
  if (forgets(*of(host).faulty)) return EP_STATUS_NOT_FOUND;
  return of(host).inner->blob_get(of(host).inner, key, take, context);
}

void blob_put(const ep_host* host, ep_string key, const void* data, uint64_t size) {
  if (forgets(*of(host).faulty)) return;
  of(host).faulty->blobs_kept.fetch_add(1);
  of(host).inner->blob_put(of(host).inner, key, data, size);
}

struct Plugin {
  Faulty* faulty;
  const ep_host* host;
  Host wrapped;
  ep_plugin_ops inner;
};

struct Device {
  Plugin* plugin;
  ep_device* handle;
  ep_device_ops inner;
  bool synchronous;
  std::atomic<bool> lost{false};
  std::shared_mutex inside;  // held shared by submitting calls, so that none runs after the loss
  std::mutex mutex;
  std::vector<ep_stream*> streams;
  std::unordered_set<const ep_stream*> recording;  // recording a command list: nothing runs, so no fault occurs
  std::unordered_map<const ep_stream*, std::deque<ep_fault>> late;  // faults of dropped launches
  std::unordered_map<const ep_stream*, ep_fault> ahead;  // faults of the wrapped device that the host has not taken yet
};

// The device of each handle.
struct Handles {
  std::shared_mutex mutex;
  std::unordered_map<const void*, std::shared_ptr<Device>> by;
};

Handles& handles() {
  static auto* all = new Handles;
  return *all;
}

std::shared_ptr<Device> device_of(const void* handle) {
  std::shared_lock lock(handles().mutex);
  const auto found = handles().by.find(handle);
  return found == handles().by.end() ? nullptr : found->second;
}

void remember(const void* handle, const std::shared_ptr<Device>& device) {
  std::lock_guard lock(handles().mutex);
  handles().by[handle] = device;
}

void forget(const void* handle) {
  std::lock_guard lock(handles().mutex);
  handles().by.erase(handle);
}

ep_status fail(Device& device, Slot slot, ep_status status, ep_error** error) {
  const std::string sentence = std::string(slot_name(slot)) + " was told to fail.";
  const ep_host* host = device.plugin->host;
  if (error != nullptr && status != EP_STATUS_BUSY) {
    *error = host->error_make(host, status, {sentence.data(), sentence.size()}, {nullptr, 0});
  }
  return status;
}

// Lets submitted work end first. Calls that arrive meanwhile wait for that.
void lose(Device& device) {
  std::lock_guard lock(device.inside);
  device.lost = true;
  std::vector<ep_stream*> streams;
  {
    std::lock_guard list(device.mutex);
    streams = device.streams;
  }
  for (ep_stream* stream : streams) static_cast<void>(device.inner.stream_synchronize(stream, nullptr));
}

// Ends a recording whose list does not reach the host.
void end_recording(Device& device, ep_stream* stream, ep_command_list**, ep_command_list_info*, ep_error**) {
  ep_command_list* made = nullptr;
  ep_command_list_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_COMMAND_LIST_INFO;
  const std::lock_guard lock(device.mutex);
  device.recording.erase(stream);
  const ep_status ended = device.inner.command_list_end(stream, &made, &info, nullptr);
  if (ended == EP_STATUS_OK) device.inner.command_list_destroy(device.handle, made);
}

template <class... Rest>
void note_recording(Device& device, bool begins, ep_stream* stream, Rest...) {
  const std::lock_guard lock(device.mutex);
  if (begins) device.recording.insert(stream);
  if (!begins) device.recording.erase(stream);
}

bool records(Device& device, ep_primitive*, ep_stream* stream, const ep_launch*, ep_fault*, ep_error**) {
  const std::lock_guard lock(device.mutex);
  return device.recording.count(stream) != 0;
}

ep_status say_lost(Device& device, Slot slot, ep_error** error) {
  { const std::shared_lock drained(device.inside); }
  return fail(device, slot, EP_STATUS_DEVICE_LOST, error);
}

bool submits(Slot slot) {
  return slot == Slot::copy || slot == Slot::upload || slot == Slot::download || slot == Slot::peer_copy ||
         slot == Slot::primitive_launch || slot == Slot::graph_launch || slot == Slot::event_record ||
         slot == Slot::stream_wait_event || slot == Slot::command_list_replay;
}

// --- functions that do more than forward the call ---

template <Slot slot, class... Args>
void made(const std::shared_ptr<Device>&, Args...) {}
template <Slot slot>
requires(slot == Slot::stream_create) void made(const std::shared_ptr<Device>& device, ep_device*,
                                                const ep_stream_desc*, ep_stream** out, ep_error**) {
  remember(*out, device);
  std::lock_guard lock(device->mutex);
  device->streams.push_back(*out);
}
template <Slot slot>
requires(slot == Slot::event_create) void made(const std::shared_ptr<Device>& device, ep_device*, ep_event** out,
                                               ep_error**) {
  remember(*out, device);
}
template <Slot slot>
requires(slot == Slot::primitive_create) void made(const std::shared_ptr<Device>& device, ep_device*,
                                                   const ep_primitive_desc*, ep_primitive** out, ep_primitive_info*,
                                                   ep_error**) {
  remember(*out, device);
}

template <Slot slot>
requires(slot == Slot::graph_compile) void made(const std::shared_ptr<Device>& device, ep_device*, const ep_graph_desc*,
                                                ep_graph** out, ep_graph_info*, ep_error**) {
  remember(*out, device);
}

template <Slot slot>
requires(slot == Slot::command_list_end) void made(const std::shared_ptr<Device>& device, ep_stream*,
                                                   ep_command_list** out, ep_command_list_info*, ep_error**) {
  remember(*out, device);
}

template <class Handle>
void drop(Device& device, ep_device*, Handle* handle) {
  if constexpr (!std::is_same_v<Handle, ep_memory>) forget(handle);
  if constexpr (std::is_same_v<Handle, ep_stream>) {
    std::lock_guard lock(device.mutex);
    std::erase(device.streams, handle);
    device.late.erase(handle);
    device.ahead.erase(handle);
  }
}
inline void drop(Device& device, ep_device*) { forget(device.handle); }

// The launch does nothing. Its fault is reported in the way that the device uses.
ep_status fault_late(Device& device, ep_primitive*, ep_stream* stream, const ep_launch* launch, ep_fault* out_fault,
                     ep_error**) {
  const ep_fault fault{launch->tag, EP_FAULT_INDEX_OUT_OF_RANGE, 1, 77, 7, 0};
  if (device.synchronous) {
    *out_fault = fault;
    return EP_STATUS_FAULT;
  }
  std::lock_guard lock(device.mutex);
  device.late[stream].push_back(fault);
  return EP_STATUS_OK;
}

// Returns the fault of the earlier launch from both queues. The host numbers the launches of a stream in ascending
// order.
ep_status take_fault(Device& device, ep_stream* stream, ep_fault* out, ep_error** error) {
  std::lock_guard lock(device.mutex);
  auto ahead = device.ahead.find(stream);
  if (ahead == device.ahead.end()) {
    ep_fault fault{};
    const ep_status status = device.inner.stream_take_fault(stream, &fault, error);
    if (status != EP_STATUS_OK && status != EP_STATUS_NOT_FOUND) return status;
    if (status == EP_STATUS_OK) ahead = device.ahead.emplace(stream, fault).first;
    if (status == EP_STATUS_NOT_FOUND && device.late[stream].empty()) return status;
  }
  std::deque<ep_fault>& late = device.late[stream];
  if (ahead != device.ahead.end() && (late.empty() || ahead->second.tag < late.front().tag)) {
    *out = ahead->second;
    device.ahead.erase(ahead);
  } else {
    *out = late.front();
    late.pop_front();
  }
  return EP_STATUS_OK;
}

// True if the peer is lost. Submitting calls of the peer have ended by then.
bool is_peer_lost(ep_stream*, ep_buffer, ep_device* handle, ep_buffer, uint64_t, ep_error**) {
  const std::shared_ptr<Device> peer = device_of(handle);
  const std::shared_lock drained(peer->inside);
  return peer->lost;
}

struct Striking {
  template <Slot slot, class First, class... Rest>
  static auto call(First first, Rest... rest) {
    const std::shared_ptr<Device> device = device_of(first);
    const auto function = device->inner.*loader::SlotTraits<slot>::member;
    using Answer = decltype(function(first, rest...));
    if constexpr (std::is_void_v<Answer>) {
      Trouble ignored;
      static_cast<void>(device->plugin->faulty->strikes(slot, &ignored));
      drop(*device, first, rest...);
      function(first, rest...);
    } else {
      const ep_status status = answer<slot>(*device, function, first, rest...);
      if (status == EP_STATUS_OK) made<slot>(device, first, rest...);
      return status;
    }
  }

 private:
  template <Slot slot, class Function, class... Args>
  static ep_status answer(Device& device, Function function, Args... args) {
    ep_error** error = loader::last_of(args...);
    Trouble trouble;
    const bool struck = device.plugin->faulty->strikes(slot, &trouble);
    if (struck && trouble == Trouble::lose) lose(device);
    if (struck && trouble == Trouble::cancel) device.plugin->faulty->cancel();
    if (device.lost) {
      if constexpr (slot == Slot::command_list_end) end_recording(device, args...);
      return say_lost(device, slot, error);
    }
    if (struck && trouble == Trouble::slow) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      if (slot == Slot::event_query) return EP_STATUS_BUSY;
    }
    if (struck && (trouble == Trouble::refuse || trouble == Trouble::exhaust)) {
      if constexpr (slot == Slot::command_list_end) end_recording(device, args...);
      return fail(device, slot, device.plugin->faulty->next_status(slot, trouble), error);
    }
    if constexpr (slot == Slot::primitive_launch) {
      if (struck && trouble == Trouble::late && !records(device, args...)) return fault_late(device, args...);
    }
    if constexpr (slot == Slot::stream_take_fault) return take_fault(device, args...);
    if constexpr (slot == Slot::peer_copy) {
      if (is_peer_lost(args...)) return fail(device, slot, EP_STATUS_CANCELLED, error);
    }
    std::shared_lock<std::shared_mutex> lock;
    if (submits(slot)) lock = std::shared_lock(device.inside);
    if (device.lost) return fail(device, slot, EP_STATUS_DEVICE_LOST, error);
    const ep_status status = function(args...);
    if constexpr (slot == Slot::command_list_begin || slot == Slot::command_list_end) {
      note_recording(device, slot == Slot::command_list_begin && status == EP_STATUS_OK, args...);
    }
    return status;
  }
};

// --- the plug-in ---

Plugin& of(ep_plugin* plugin) { return *reinterpret_cast<Plugin*>(plugin); }

void shutdown(ep_plugin* plugin) {
  of(plugin).inner.shutdown(of(plugin).inner.plugin);
  delete &of(plugin);
}

ep_status device_count(ep_plugin* plugin, uint32_t* out, ep_error** error) {
  return of(plugin).inner.device_count(of(plugin).inner.plugin, out, error);
}

ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out, ep_error** error) {
  return of(plugin).inner.device_info(of(plugin).inner.plugin, index, out, error);
}

ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out, ep_error** error) {
  const ep_plugin_ops& ops = of(plugin).inner;
  ep_device_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_DEVICE_INFO;
  if (const ep_status status = ops.device_info(ops.plugin, index, &info, error); status != EP_STATUS_OK) return status;
  const ep_status status = ops.device_open(ops.plugin, index, out_device, out, error);
  if (status != EP_STATUS_OK) return status;
  auto device = std::make_shared<Device>();
  device->plugin = &of(plugin);
  device->handle = *out_device;
  device->inner = *out;
  device->synchronous = (info.flags & EP_DEVICE_FLAG_SYNCHRONOUS) != 0;
  remember(*out_device, device);
  loader::wrap_table<Striking>(*out);
  return status;
}

template <int number>
ep_status query(const ep_host* host, ep_plugin_ops* out, ep_error** error) {
  auto plugin = std::make_unique<Plugin>(Plugin{&faulty(number), host, {*host, host, &faulty(number)}, {}});
  plugin->wrapped.table.blob_get = blob_get;
  plugin->wrapped.table.blob_put = blob_put;
  plugin->inner.struct_size = sizeof plugin->inner;
  plugin->inner.struct_type = EP_STRUCT_PLUGIN_OPS;
  const ep_status status = faulty(number).query()(&plugin->wrapped.table, &plugin->inner, error);
  if (status != EP_STATUS_OK) return status;
  out->abi_major = plugin->inner.abi_major;
  out->abi_minor = plugin->inner.abi_minor;
  out->plugin = reinterpret_cast<ep_plugin*>(plugin.release());
  out->shutdown = shutdown;
  out->device_count = device_count;
  out->device_info = device_info;
  out->device_open = device_open;
  return EP_STATUS_OK;
}

bool makes_something(Slot slot) {
  return slot == Slot::memory_allocate || slot == Slot::stream_create || slot == Slot::event_create ||
         slot == Slot::primitive_create || slot == Slot::primitive_launch || slot == Slot::memory_import_host ||
         slot == Slot::graph_compile || slot == Slot::graph_launch || slot == Slot::command_list_begin ||
         slot == Slot::command_list_end || slot == Slot::command_list_replay;
}

}  // namespace

bool can_strike(Slot slot, Trouble trouble) {
  const bool silent = slot == Slot::device_close || slot == Slot::memory_free || slot == Slot::device_trim ||
                      slot == Slot::stream_destroy || slot == Slot::event_destroy || slot == Slot::primitive_destroy ||
                      slot == Slot::command_list_destroy;
  if (silent) return false;
  if (trouble == Trouble::late) return slot == Slot::primitive_launch;
  if (trouble == Trouble::cancel) return slot == Slot::primitive_create || slot == Slot::graph_compile;
  return trouble != Trouble::exhaust || makes_something(slot);
}

std::string Faulty::wrap(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  query_ = reinterpret_cast<ep_plugin_query_fn>(dlsym(library, EP_PLUGIN_QUERY_SYMBOL));
  return query_ == nullptr ? path + " has no query" : std::string();
}

void Faulty::arm(Slot slot, Trouble trouble, int64_t nth, std::optional<Slot> first) {
  std::lock_guard lock(mutex_);
  first_ = first;
  slot_ = slot;
  trouble_ = trouble;
  left_ = nth;
  struck_ = false;
  seen_ = 0;
  armed_ = true;
}

void Faulty::on_cancel(std::function<void()> cancel) {
  std::lock_guard lock(mutex_);
  cancel_ = std::move(cancel);
}

void Faulty::cancel() {
  std::lock_guard lock(mutex_);
  if (cancel_) cancel_();
}

bool Faulty::disarm() {
  std::lock_guard lock(mutex_);
  armed_ = false;
  return struck_;
}

bool Faulty::strikes(Slot slot, Trouble* trouble) {
  calls_[static_cast<size_t>(slot)].fetch_add(1, std::memory_order_relaxed);
  if (!armed_.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(mutex_);
  if (armed_ && first_ == slot) {
    first_.reset();
    *trouble = Trouble::refuse;
    return true;
  }
  if (!armed_ || slot != slot_) return false;
  seen_.fetch_add(1, std::memory_order_relaxed);
  if (struck_ || left_-- > 0) return false;
  struck_ = true;
  *trouble = trouble_;
  return true;
}

ep_status Faulty::next_status(Slot slot, Trouble trouble) {
  std::lock_guard lock(mutex_);
  ++round_;
  if (trouble == Trouble::exhaust) {
    return round_ % 2 == 0 ? EP_STATUS_OUT_OF_DEVICE_MEMORY : EP_STATUS_OUT_OF_HOST_MEMORY;
  }
  constexpr ep_status any[] = {EP_STATUS_INTERNAL, EP_STATUS_OUT_OF_HOST_MEMORY, EP_STATUS_CANCELLED};
  const bool may_refuse =
      slot == Slot::primitive_support || slot == Slot::primitive_create || slot == Slot::graph_compile;
  return may_refuse && round_ % 4 == 0 ? EP_STATUS_UNSUPPORTED : any[round_ % 3];
}

Faulty& faulty(int number) {
  static auto* all = new std::array<Faulty, 3>;
  return all->at(static_cast<size_t>(number));
}

ep_plugin_query_fn faulty_query(int number) {
  constexpr ep_plugin_query_fn queries[] = {query<0>, query<1>, query<2>};
  return queries[number];
}

}  // namespace tenon::fakes
