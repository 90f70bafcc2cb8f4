// The asynchronous fake as a provider.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sdk/provider/implementation.h"
#include "sdk/provider/negotiate.h"
#include "tests/fakes/async/device.h"

using tenon::fakes::async_control;
using tenon::fakes::AsyncControl;
using tenon::fakes::Command;

namespace tenon::fakes {

AsyncControl& async_control() {
  static auto* control = new AsyncControl;
  return *control;
}

std::string AsyncControl::violation() {
  std::lock_guard lock(mutex_);
  return violation_;
}

void AsyncControl::violate(const std::string& text) {
  if (abort_on_violation.load()) {
    std::fprintf(stderr, "async device: %s\n", text.c_str());
    std::abort();
  }
  std::lock_guard lock(mutex_);
  if (violation_.empty()) violation_ = text;
}

void AsyncControl::reset() {
  devices = 2;
  memory = uint64_t{1} << 20;
  delay_us = 0;
  seed = 1;
  shadow = true;
  lazy = early = hold = false;
  fail_allocation = fail_launch = -1;
  fail_count = 1;
  lose_device = false;
  failed_allocations = failed_launches = 0;
  allocations = launches = overlaps = faults = device_waits = 0;
  std::lock_guard lock(mutex_);
  violation_.clear();
}

}  // namespace tenon::fakes

namespace {

ep_string text(const std::string& value) { return {value.data(), value.size()}; }

ep_status fail(const ep_host* host, ep_error** error, ep_status status, const std::string& sentence) {
  if (error != nullptr) *error = host->error_make(host, status, text(sentence), {nullptr, 0});
  return status;
}

// What a lost device runs at that moment ends first: after this answer it touches no memory.
ep_status lost(ep_device* device, ep_error** error) {
  while (device->busy.load() != 0) std::this_thread::yield();
  return fail(device->host, error, EP_STATUS_DEVICE_LOST, "the device fell off the bus.");
}

bool is_lost() { return async_control().lose_device.load(std::memory_order_relaxed); }

// Counts `after` down; true for the `fail_count` calls that are to fail once it is at 0.
bool due(std::atomic<int64_t>& after, std::atomic<int64_t>& failed) {
  if (after.load(std::memory_order_relaxed) == -1) return false;
  static auto* mutex = new std::mutex;
  std::lock_guard lock(*mutex);
  if (after.load() == -1) return false;
  if (after.load() > 0) {
    after.fetch_sub(1);
    return false;
  }
  if (failed.fetch_add(1) + 1 >= async_control().fail_count.load()) {
    after.store(-1);
    failed.store(0);
  }
  return true;
}

// --- memory ---

ep_status memory_allocate(ep_device* device, uint32_t, uint64_t size, ep_memory** out, ep_error** error) {
  AsyncControl& control = async_control();
  control.allocations.fetch_add(1);
  std::lock_guard lock(device->mutex);
  if (due(control.fail_allocation, control.failed_allocations)) {
    return fail(device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "this allocation was told to fail.");
  }
  if (device->allocated + size > control.memory.load()) {
    return fail(device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY,
                std::to_string(size) + " bytes do not fit beside the " + std::to_string(device->allocated) +
                    " in use of " + std::to_string(control.memory.load()) + ".");
  }
  device->allocated += size;
  control.allocated_bytes.fetch_add(size);
  auto* memory = new ep_memory(size);
  std::memset(memory->bytes.data(), 0xa5, size);
  if (control.shadow.load()) memory->shadow = tenon::fakes::ShadowMemory(size);
  *out = memory;
  return EP_STATUS_OK;
}

void memory_free(ep_device* device, ep_memory* memory) {
  if (memory == nullptr) return;
  if (async_control().shadow.load()) {
    if (const std::string wrong = device->plugin->shadow.free(memory->shadow); !wrong.empty()) {
      async_control().violate(wrong);
    }
  }
  std::lock_guard lock(device->mutex);
  device->allocated -= memory->bytes.size();
  async_control().allocated_bytes.fetch_sub(memory->bytes.size());
  delete memory;
}

// --- streams ---

ep_status stream_create(ep_device* device, ep_stream** out, ep_error** error) {
  const int number = device->plugin->shadow.add_stream();
  if (number < 0 && async_control().shadow.load()) {
    return fail(device->host, error, EP_STATUS_UNSUPPORTED, "the shadow keeps eight streams apart, no more.");
  }
  auto* stream = new ep_stream(device);
  stream->number = number;
  *out = stream;
  return EP_STATUS_OK;
}

void stream_destroy(ep_device*, ep_stream* stream) { delete stream; }

ep_status stream_synchronize(ep_stream* stream, ep_error** error) {
  if (is_lost()) return lost(stream->device, error);
  stream->drain();
  tenon::fakes::Shadow& shadow = stream->device->plugin->shadow;
  if (async_control().shadow.load()) shadow.wait(tenon::fakes::kHostClock, shadow.record(stream->number));
  return EP_STATUS_OK;
}

ep_status stream_flush(ep_stream* stream, ep_error**) {
  stream->flush();
  return EP_STATUS_OK;
}

ep_status stream_take_fault(ep_stream* stream, ep_fault* out, ep_error** error) {
  if (stream->fault_count.load(std::memory_order_acquire) != 0) {
    std::lock_guard lock(stream->mutex);
    if (!stream->faults.empty()) {
      *out = stream->faults.front();
      stream->faults.pop_front();
      stream->fault_count.fetch_sub(1);
      return EP_STATUS_OK;
    }
  }
  if (error != nullptr) *error = nullptr;
  return EP_STATUS_NOT_FOUND;
}

// --- work ---

struct Access {
  ep_buffer buffer;
  uint64_t bytes;
  bool write;
};

void check(ep_stream* stream, const Access* accesses, size_t count) {
  AsyncControl& control = async_control();
  if (!control.shadow.load(std::memory_order_relaxed)) return;
  tenon::fakes::Shadow& shadow = stream->device->plugin->shadow;
  const uint64_t number = shadow.begin(stream->number);
  for (size_t i = 0; i < count; ++i) {
    const std::string wrong = shadow.access(accesses[i].buffer.memory->shadow, stream->number, number,
                                            accesses[i].buffer.offset, accesses[i].bytes, accesses[i].write);
    if (!wrong.empty()) control.violate(wrong);
  }
}

char* address(ep_buffer buffer) { return buffer.memory->bytes.data() + buffer.offset; }

ep_status transfer(ep_stream* stream, Command::Kind kind, char* dst, const char* src, uint64_t bytes) {
  Command command;
  command.kind = kind;
  command.pointers = {dst, const_cast<char*>(src), nullptr};
  if (kind == Command::upload && async_control().early.load(std::memory_order_relaxed)) {
    command.early = std::make_shared<std::vector<char>>(src, src + bytes);
    command.pointers[1] = command.early->data();
  }
  command.bytes = bytes;
  stream->push(command);
  return EP_STATUS_OK;
}

ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error** error) {
  if (is_lost()) return lost(stream->device, error);
  const Access accesses[] = {{src, size, false}, {dst, size, true}};
  check(stream, accesses, 2);
  return transfer(stream, Command::copy, address(dst), address(src), size);
}

ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error** error) {
  if (is_lost()) return lost(stream->device, error);
  const Access access{dst, size, true};
  check(stream, &access, 1);
  return transfer(stream, Command::upload, address(dst), static_cast<const char*>(src), size);
}

ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error** error) {
  if (is_lost()) return lost(stream->device, error);
  const Access access{src, size, false};
  check(stream, &access, 1);
  return transfer(stream, Command::download, static_cast<char*>(dst), address(src), size);
}

// --- events ---

ep_status event_create(ep_device* device, ep_event** out, ep_error**) {
  auto* event = new ep_event;
  event->host = device->host;
  *out = event;
  return EP_STATUS_OK;
}

void event_destroy(ep_device*, ep_event* event) { delete event; }

ep_status event_record(ep_event* event, ep_stream* stream, ep_error** error) {
  if (is_lost()) return lost(stream->device, error);
  Command command;
  command.kind = Command::record;
  command.event = event;
  {
    std::lock_guard lock(event->mutex);
    command.point = ++event->recorded;
    event->stream = stream;
    if (async_control().shadow.load()) event->clock = stream->device->plugin->shadow.record(stream->number);
    event->recorded_now.store(event->recorded, std::memory_order_release);
  }
  stream->push(command);
  return EP_STATUS_OK;
}

void seen(ep_event* event) {
  if (!async_control().shadow.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(event->mutex);
  event->stream->device->plugin->shadow.wait(tenon::fakes::kHostClock, event->clock);
}

ep_status never_recorded(ep_event* event, ep_error** error) {
  return fail(event->host, error, EP_STATUS_INVALID_ARGUMENT, "the event was never recorded.");
}

ep_status event_query(ep_event* event, ep_error** error) {
  const uint64_t recorded = event->recorded_now.load(std::memory_order_acquire);
  if (recorded == 0) return never_recorded(event, error);
  if (is_lost()) return lost(event->stream->device, error);
  if (event->completed_now.load(std::memory_order_acquire) >= recorded) {
    seen(event);
    return EP_STATUS_OK;
  }
  event->stream->flush();
  return EP_STATUS_BUSY;
}

ep_status event_host_wait(ep_event* event, uint64_t timeout_ns, ep_error** error) {
  if (event->recorded_now.load(std::memory_order_acquire) == 0) return never_recorded(event, error);
  if (is_lost()) return lost(event->stream->device, error);
  event->stream->flush();
  {
    std::unique_lock lock(event->mutex);
    const uint64_t point = event->recorded;
    const auto fired = [&] { return event->completed >= point; };
    const auto longest = std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, uint64_t{1} << 60));
    if (!event->fired.wait_for(lock, longest, fired)) {
      if (error != nullptr) *error = nullptr;
      return EP_STATUS_TIMEOUT;
    }
  }
  seen(event);
  return EP_STATUS_OK;
}

ep_status stream_wait_event(ep_stream* stream, ep_event* event, ep_error** error) {
  if (event->recorded_now.load(std::memory_order_acquire) == 0) return never_recorded(event, error);
  if (is_lost()) return lost(stream->device, error);
  async_control().device_waits.fetch_add(1, std::memory_order_relaxed);
  event->stream->flush();
  Command command;
  command.kind = Command::wait;
  command.event = event;
  {
    std::lock_guard lock(event->mutex);
    command.point = event->recorded;
    if (async_control().shadow.load()) stream->device->plugin->shadow.wait(stream->number, event->clock);
  }
  stream->push(command);
  return EP_STATUS_OK;
}

// --- primitives ---

bool has_dtype(const ep_primitive_desc* desc, int32_t first, int32_t second) {
  for (uint32_t i = 0; i < desc->operand_count; ++i) {
    const ep_operand_desc& operand = desc->operands[i];
    if ((operand.dtype != first && operand.dtype != second) || operand.dtype != desc->operands[0].dtype) return false;
    if ((operand.flags & EP_OPERAND_FLAG_SCALAR) != 0) return false;
    for (int32_t axis = 0; axis < operand.rank; ++axis) {
      if (operand.dims[axis] == EP_ANY || operand.strides[axis] == EP_ANY) return false;
    }
  }
  return true;
}

std::string why_not(const ep_primitive_desc* desc) {
  if (const auto unknown = tenon::provider::unknown_parts(*desc)) return unknown.text();
  if (desc->epilogue_count != 0 || desc->baked_scalars != 0 || desc->accumulate_dtype != 0) {
    return "the asynchronous fake takes no epilogues, baked scalars and accumulation dtypes.";
  }
  const uint32_t operands = desc->operand_count;
  constexpr int32_t roles[] = {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B};
  for (uint32_t i = 0; i < operands && i < 3; ++i) {
    if (desc->operands[i].role != roles[i]) return "unknown role " + std::to_string(desc->operands[i].role) + ".";
  }
  switch (desc->kind) {
    case EP_PRIMITIVE_copy:
      if (operands == 2 && has_dtype(desc, EP_DTYPE_f32, EP_DTYPE_i32)) return {};
      return "the asynchronous fake copies f32 or i32 to the same type.";
    case EP_PRIMITIVE_unary:
      if (operands == 2 && desc->attributes.unary.op == EP_UNARY_relu && has_dtype(desc, EP_DTYPE_f32, EP_DTYPE_f32)) {
        return {};
      }
      return "of the unary functions the asynchronous fake has relu on f32.";
    case EP_PRIMITIVE_matmul:
      if (operands == 3 && has_dtype(desc, EP_DTYPE_f32, EP_DTYPE_f32)) return {};
      return "the asynchronous fake multiplies f32 matrices without bias.";
    case tenon::fakes::kMix:
      if (operands == 3 && has_dtype(desc, EP_DTYPE_i32, EP_DTYPE_i32)) return {};
      return "the kind 0x10000 takes three i32 operands.";
    default: return "unknown kind " + std::to_string(desc->kind) + ".";
  }
}

ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out, ep_error** error) {
  if (const std::string reason = why_not(desc); !reason.empty()) {
    return fail(device->host, error, EP_STATUS_UNSUPPORTED, reason);
  }
  ep_support_info info{};
  info.implementation = {"plain", 5};
  tenon::provider::fill(out, info);
  return EP_STATUS_OK;
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out,
                           ep_primitive_info* out_info, ep_error** error) {
  if (const std::string reason = why_not(desc); !reason.empty()) {
    return fail(device->host, error, EP_STATUS_UNSUPPORTED, reason);
  }
  auto* primitive = new ep_primitive;
  primitive->device = device;
  primitive->desc = *desc;
  ep_primitive_info info{};
  info.implementation = {"plain", 5};
  info.host_bytes = sizeof *primitive;
  tenon::provider::fill(out_info, info);
  *out = primitive;
  return EP_STATUS_OK;
}

void primitive_destroy(ep_device*, ep_primitive* primitive) { delete primitive; }

// Bytes from the first element of an operand to one past the last.
uint64_t reach(const ep_operand_desc& operand) {
  int64_t last = 0;
  for (int32_t axis = 0; axis < operand.rank; ++axis) last += (operand.dims[axis] - 1) * operand.strides[axis];
  return static_cast<uint64_t>(last + 1) * 4;
}

ep_status primitive_launch(ep_primitive* primitive, ep_stream* stream, const ep_launch* launch, ep_fault*,
                           ep_error** error) {
  AsyncControl& control = async_control();
  control.launches.fetch_add(1, std::memory_order_relaxed);
  const ep_host* host = stream->device->host;
  if (is_lost()) return lost(stream->device, error);
  if (due(control.fail_launch, control.failed_launches))
    return fail(host, error, EP_STATUS_INTERNAL, "this launch was told to fail.");
  Command command;
  command.primitive = primitive;
  command.tag = launch->tag;
  for (uint32_t i = 0; i < launch->scalar_count && i < command.scalars.size(); ++i)
    command.scalars[i] = launch->scalars[i];
  if (primitive->desc.kind == tenon::fakes::kMix && launch->scalar_count > 1) {
    const int64_t how = launch->scalars[1].value.i64;
    if (how == tenon::fakes::kMixRefused)
      return fail(host, error, EP_STATUS_INTERNAL, "the program asked for a refusal.");
    command.faults = how == tenon::fakes::kMixFaults || how == tenon::fakes::kMixOverflows;
    command.overflows = how == tenon::fakes::kMixOverflows;
    command.soils = how == tenon::fakes::kMixSoils;
  }
  std::array<Access, 5> accesses;
  size_t count = launch->operand_count;
  for (uint32_t i = 0; i < launch->operand_count; ++i) {
    const uint32_t at = (i + 1) % launch->operand_count;  // inputs first
    accesses[i] = {launch->operands[at], reach(primitive->desc.operands[at]), at == 0};
    command.pointers[at] = address(launch->operands[at]);
  }
  if (launch->workspace.memory != nullptr) {
    command.workspace = address(launch->workspace);
    accesses[count++] = {launch->workspace, reach(primitive->desc.operands[0]), true};
  }
  if (launch->scratch.memory != nullptr) {
    command.scratch = address(launch->scratch);
    accesses[count++] = {launch->scratch, 4, true};
  }
  check(stream, accesses.data(), count);
  stream->push(command);
  return EP_STATUS_OK;
}

// --- the plug-in ---

void device_close(ep_device* device) { delete device; }

ep_status device_count(ep_plugin*, uint32_t* out, ep_error**) {
  *out = async_control().devices.load();
  return EP_STATUS_OK;
}

ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out, ep_error** error) {
  if (index >= async_control().devices.load()) {
    return fail(plugin->host, error, EP_STATUS_NOT_FOUND, "there is no device " + std::to_string(index) + ".");
  }
  std::string& name = plugin->names.at(index);
  if (name.empty()) name = "asynchronous fake " + std::to_string(index);
  ep_device_info info{};
  info.name = text(name);
  info.fingerprint = {"async-1", 7};
  info.device_class = EP_DEVICE_CLASS_SOFTWARE;
  info.pool_count = 1;
  info.dtypes = ~uint64_t{0};
  std::fill(std::begin(info.pci), std::end(info.pci), -1);
  info.pools[0].flags = EP_POOL_FLAG_DEVICE_LOCAL;
  info.pools[0].size = async_control().memory.load();
  info.pools[0].minimum_alignment = 64;
  tenon::provider::fill(out, info);
  return EP_STATUS_OK;
}

ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out_ops,
                      ep_error** error) {
  if (index >= async_control().devices.load()) {
    return fail(plugin->host, error, EP_STATUS_NOT_FOUND, "there is no device " + std::to_string(index) + ".");
  }
  auto* device = new ep_device;
  device->host = plugin->host;
  device->plugin = plugin;
  device->index = index;
  ep_device_ops ops{};
  ops.device_close = device_close;
  ops.memory_allocate = memory_allocate;
  ops.memory_free = memory_free;
  ops.stream_create = stream_create;
  ops.stream_destroy = stream_destroy;
  ops.stream_synchronize = stream_synchronize;
  ops.stream_flush = stream_flush;
  ops.stream_take_fault = stream_take_fault;
  ops.copy = copy;
  ops.upload = upload;
  ops.download = download;
  ops.event_create = event_create;
  ops.event_destroy = event_destroy;
  ops.event_record = event_record;
  ops.event_query = event_query;
  ops.event_host_wait = event_host_wait;
  ops.stream_wait_event = stream_wait_event;
  ops.primitive_support = primitive_support;
  ops.primitive_create = primitive_create;
  ops.primitive_destroy = primitive_destroy;
  ops.primitive_launch = primitive_launch;
  tenon::provider::fill(out_ops, ops);
  *out_device = device;
  return EP_STATUS_OK;
}

void shutdown(ep_plugin* plugin) { delete plugin; }

// What the configuration sets; the rest stays as it is.
void configure(const ep_host* host) {
  const auto read = [host](const char* key, auto& target) {
    ep_string value{nullptr, 0};
    if (host->config_get(host, {key, std::strlen(key)}, &value) != EP_STATUS_OK) return;
    const std::string number(value.data, value.size);
    using Value = std::decay_t<decltype(target.load())>;
    target.store(static_cast<Value>(std::strtoll(number.c_str(), nullptr, 10)));
  };
  AsyncControl& control = async_control();
  read("devices", control.devices);
  read("memory", control.memory);
  read("delay_us", control.delay_us);
  read("seed", control.seed);
  read("shadow", control.shadow);
  read("lazy", control.lazy);
  read("early", control.early);
  read("fail_allocation", control.fail_allocation);
  read("fail_launch", control.fail_launch);
}

}  // namespace

namespace tenon::fakes {

ep_status async_query(const ep_host* host, ep_plugin_ops* out, ep_error** error) {
  if (host->abi_major != EP_ABI_MAJOR || host->abi_minor != EP_ABI_MINOR) {
    return fail(host, error, EP_STATUS_VERSION, "the asynchronous fake was built for another version.");
  }
  configure(host);
  auto* plugin = new ep_plugin;
  plugin->host = host;
  ep_plugin_ops ops{};
  ops.abi_major = EP_ABI_MAJOR;
  ops.abi_minor = EP_ABI_MINOR;
  ops.plugin = plugin;
  ops.shutdown = shutdown;
  ops.device_count = device_count;
  ops.device_info = device_info;
  ops.device_open = device_open;
  tenon::provider::fill(out, ops);
  return EP_STATUS_OK;
}

}  // namespace tenon::fakes
