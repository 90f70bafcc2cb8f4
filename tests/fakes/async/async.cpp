// The asynchronous fake as a provider.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "sdk/provider/negotiate.h"
#include "tests/fakes/async/device.h"
#include "tests/fakes/async/layouts.h"

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
  delay_us = launch_us = 0;
  computes = true;
  seed = 1;
  shadow = true;
  lazy = early = peers = mapped = pinned = hold = exclusive = reference = graphs = takes_modules = late_waits = blobs =
      images = false;
  lists = bindings = true;
  granularity = graph_seed = 1;
  fail_allocation = fail_launch = fail_graph = fail_import = fail_semaphore = fail_replay = -1;
  layout_seed = 0;
  fail_count = 1;
  lose_device = false;
  query_answer = host_wait_answer = synchronize_answer = compile_answer = elapsed_answer = create_answer = EP_STATUS_OK;
  begin_answer = end_answer = EP_STATUS_OK;
  failed_allocations = failed_launches = failed_graphs = failed_imports = failed_semaphores = failed_replays = 0;
  allocations = launches = peer_copies = overlaps = faults = device_waits = 0;
  packs = packs_alone = false;
  fail_pack = -1;
  failed_packs = 0;
  packed = packed_reads = 0;
  create_us = created_primitives = cancelled_creates = timed_records = 0;
  compiled_graphs = compiled_nodes = destroyed_graphs = launched_graphs = replays = 0;
  opaque_reads = opaque_writes = 0;
  std::lock_guard lock(mutex_);
  violation_.clear();
}

namespace {

ep_string text(const std::string& value) { return {value.data(), value.size()}; }

}  // namespace

ep_status fail(const ep_host* host, ep_error** error, ep_status status, const std::string& sentence) {
  if (error != nullptr) *error = host->error_make(host, status, text(sentence), {nullptr, 0});
  return status;
}

ep_status lost(ep_device* device, ep_error** error) {
  while (device->busy.load() != 0) std::this_thread::yield();
  return fail(device->host, error, EP_STATUS_DEVICE_LOST, "the device fell off the bus.");
}

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

namespace {

// The bytes of the blob of a created object: their number and content are drawn from the seed.
std::string blob_of(uint64_t seed) {
  std::string blob(1 + seed % 5000, 0);
  for (char& byte : blob) byte = static_cast<char>((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 56);
  return blob;
}

void use_blob(const ep_host* host, uint64_t seed) {
  const std::string key = fmt::format("made {}", seed), wanted = blob_of(seed);
  std::string got;
  const auto take = [](void* out, const void* data, uint64_t size) {
    static_cast<std::string*>(out)->assign(static_cast<const char*>(data), size);
  };
  if (host->blob_get(host, text(key), take, &got) != EP_STATUS_OK) {
    return host->blob_put(host, text(key), wanted.data(), wanted.size());
  }
  if (got != wanted) async_control().violate(fmt::format("the blob '{}' came back changed", key));
}

}  // namespace

ep_status compile(ep_device* device, uint64_t seed, ep_error** error) {
  AsyncControl& control = async_control();
  if (control.blobs) use_blob(device->host, seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(control.create_us.load());
  control.creating.fetch_add(1);
  bool stopped = device->host->cancel_requested(device->host) != 0;
  while (!stopped && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    stopped = device->host->cancel_requested(device->host) != 0;
  }
  control.creating.fetch_sub(1);
  if (const ep_status told = control.create_answer; told != EP_STATUS_OK) {
    return fail(device->host, error, told, "the compiler was told to fail.");
  }
  if (!stopped) return EP_STATUS_OK;
  control.cancelled_creates.fetch_add(1);
  return fail(device->host, error, EP_STATUS_CANCELLED, "the compiler was stopped.");
}

void check_exclusive(const ep_stream* stream, const Access* accesses, size_t count) {
  if (!stream->device->plugin->exclusive) return;
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) {
      const bool alias = accesses[i].buffer.offset == accesses[j].buffer.offset;
      if (i == j || alias || !accesses[i].write || accesses[i].buffer.memory != accesses[j].buffer.memory) continue;
      async_control().violate("a block that is written has another operand in it");
    }
  }
}

void check(ep_stream* stream, const Access* accesses, size_t count) {
  AsyncControl& control = async_control();
  if (stream->recording != nullptr) {
    auto& recorded = stream->recording->accesses;
    recorded.insert(recorded.end(), accesses, accesses + count);
    return;
  }
  if (!control.shadow.load(std::memory_order_relaxed)) return;
  Shadow& shadow = stream->device->plugin->shadow;
  const uint64_t number = shadow.begin(stream->number);
  for (size_t i = 0; i < count; ++i) {
    const std::string wrong = shadow.access(accesses[i].buffer.memory->shadow, stream->number, number,
                                            accesses[i].buffer.offset, accesses[i].bytes, accesses[i].write);
    if (!wrong.empty()) control.violate(wrong);
  }
}

void check_no_image(const ep_memory* memory) {
  if (memory->image)
    async_control().violate("an image is not an operand with strides, and no transfer moves its bytes");
}

uint32_t image_pool(const ep_plugin* plugin) { return plugin->pinned ? 2 : 1; }

ep_status allocate(ep_device* device, uint64_t size, bool counted, ep_memory** out, ep_error** error) {
  AsyncControl& control = async_control();
  control.allocations.fetch_add(1);
  std::lock_guard lock(device->mutex);
  if (due(control.fail_allocation, control.failed_allocations)) {
    return fail(device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "this allocation was told to fail.");
  }
  if (counted && device->allocated + size > control.memory.load()) {
    return fail(
        device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY,
        fmt::format("{} bytes do not fit beside the {} in use of {}.", size, device->allocated, control.memory.load()));
  }
  if (counted) device->allocated += size;
  control.allocated_bytes.fetch_add(size);
  auto* memory = new ep_memory(size);
  memory->counted = counted;
  std::memset(memory->data(), 0xa5, size);
  if (control.shadow.load()) memory->shadow = ShadowMemory(size);
  *out = memory;
  return EP_STATUS_OK;
}

namespace {

// --- memory ---

ep_status memory_allocate(ep_device* device, uint32_t pool, uint64_t size, ep_memory** out, ep_error** error) {
  if (async_control().images && pool == image_pool(device->plugin)) {
    async_control().violate("memory_allocate in the pool of images");
  }
  return allocate(device, size, pool == 0, out, error);  // the transfer pool is host memory and is not counted
}

void memory_free(ep_device* device, ep_memory* memory) {
  if (memory == nullptr) return;
  if (memory->lists != 0) async_control().violate("memory that a command list uses is freed");
  if (async_control().shadow.load()) {
    if (const std::string wrong = device->plugin->shadow.free(memory->shadow); !wrong.empty()) {
      async_control().violate(wrong);
    }
  }
  std::lock_guard lock(device->mutex);
  if (memory->foreign != nullptr) {
    async_control().imports.fetch_sub(1);
  } else {
    if (memory->counted) device->allocated -= memory->bytes.size();
    async_control().allocated_bytes.fetch_sub(memory->bytes.size());
  }
  delete memory;
}

ep_status memory_map(ep_device*, ep_memory* memory, void** out, ep_error**) {
  *out = memory->data();
  return EP_STATUS_OK;
}

// --- streams ---

ep_status stream_create(ep_device* device, const ep_stream_desc* desc, ep_stream** out, ep_error** error) {
  if ((desc->flags & ~EP_STREAM_FLAG_TIMED) != 0) {
    return fail(device->host, error, EP_STATUS_UNSUPPORTED, fmt::format("unknown stream flags {:#x}.", desc->flags));
  }
  const int number = device->plugin->shadow.add_stream();
  if (number < 0 && async_control().shadow.load()) {
    return fail(device->host, error, EP_STATUS_UNSUPPORTED,
                fmt::format("the shadow keeps {} streams apart, no more.", kHostClock));
  }
  auto* stream = new ep_stream(device);
  stream->number = number;
  stream->timed = (desc->flags & EP_STREAM_FLAG_TIMED) != 0;
  *out = stream;
  return EP_STATUS_OK;
}

void stream_destroy(ep_device*, ep_stream* stream) {
  if (stream != nullptr && stream->recording != nullptr)
    async_control().violate("a stream is destroyed while it records");
  delete stream;
}

ep_status stream_synchronize(ep_stream* stream, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (is_lost()) return lost(stream->device, error);
  if (const ep_status told = async_control().synchronize_answer; told != EP_STATUS_OK) {
    return fail(stream->device->plugin->host, error, told, "the queue does not answer.");
  }
  stream->drain();
  Shadow& shadow = stream->device->plugin->shadow;
  if (async_control().shadow.load()) shadow.wait(kHostClock, shadow.record(stream->number));
  return EP_STATUS_OK;
}

ep_status stream_flush(ep_stream* stream, ep_error**) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  stream->flush();
  return EP_STATUS_OK;
}

ep_status stream_take_fault(ep_stream* stream, ep_fault* out, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
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

void check_multiples(const ep_stream* stream, std::initializer_list<uint64_t> numbers) {
  const uint64_t unit = stream->device->plugin->granularity;
  for (const uint64_t number : numbers) {
    if (number % unit == 0) continue;
    async_control().violate(
        fmt::format("a transfer at or of {} bytes on a device that moves multiples of {}", number, unit));
  }
}

// `foreign` means that the source is not memory of this device.
ep_status transfer(ep_stream* stream, Command::Kind kind, char* dst, const char* src, uint64_t bytes, bool foreign) {
  Command command;
  command.kind = kind;
  command.pointers = {dst, const_cast<char*>(src), nullptr};
  if (foreign && async_control().early.load(std::memory_order_relaxed)) {
    command.early = std::make_shared<std::vector<char>>(src, src + bytes);
    command.pointers[1] = command.early->data();
  }
  command.bytes = bytes;
  stream->push(std::move(command));
  return EP_STATUS_OK;
}

ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error** error) {
  begin_work(stream);
  if (is_lost()) return lost(stream->device, error);
  check_multiples(stream, {dst.offset, src.offset, size});
  const Access accesses[] = {{src, size, false}, {dst, size, true}};
  check_no_image(dst.memory);
  check_no_image(src.memory);
  check_exclusive(stream, accesses, 2);
  check(stream, accesses, 2);
  return transfer(stream, Command::copy, address(dst), address(src), size, false);
}

ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (is_lost()) return lost(stream->device, error);
  check_multiples(stream, {dst.offset, size});
  const Access access{dst, size, true};
  check_no_image(dst.memory);
  check(stream, &access, 1);
  return transfer(stream, Command::upload, address(dst), static_cast<const char*>(src), size, true);
}

ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (is_lost()) return lost(stream->device, error);
  check_multiples(stream, {src.offset, size});
  const Access access{src, size, false};
  check_no_image(src.memory);
  check(stream, &access, 1);
  return transfer(stream, Command::download, static_cast<char*>(dst), address(src), size, false);
}

ep_status peer_open(ep_device* device, ep_device* peer, ep_error** error) {
  ep_plugin* plugin = device->plugin;
  if (!plugin->peers) return fail(device->host, error, EP_STATUS_UNSUPPORTED, "these devices have no direct way.");
  std::lock_guard lock(plugin->mutex);
  plugin->opened_peers.insert({device, peer});
  return EP_STATUS_OK;
}

ep_status peer_copy(ep_stream* stream, ep_buffer dst, ep_device* peer, ep_buffer src, uint64_t size, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (is_lost()) return lost(stream->device, error);
  ep_plugin* plugin = stream->device->plugin;
  {
    std::lock_guard lock(plugin->mutex);
    if (plugin->opened_peers.count({stream->device, peer}) == 0) {
      async_control().violate("a peer copy between devices for which peer_open did not return OK");
    }
  }
  async_control().peer_copies.fetch_add(1, std::memory_order_relaxed);
  const Access accesses[] = {{src, size, false}, {dst, size, true}};
  check(stream, accesses, 2);
  return transfer(stream, Command::copy, address(dst), address(src), size, true);
}

// --- the plug-in ---

void device_close(ep_device* device) {
  {
    std::lock_guard lock(device->plugin->mutex);
    std::erase_if(device->plugin->opened_peers,
                  [&](const auto& pair) { return pair.first == device || pair.second == device; });
  }
  delete device;
}

ep_status device_count(ep_plugin*, uint32_t* out, ep_error**) {
  *out = async_control().devices.load();
  return EP_STATUS_OK;
}

ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out, ep_error** error) {
  if (index >= async_control().devices.load()) {
    return fail(plugin->host, error, EP_STATUS_NOT_FOUND, fmt::format("there is no device {}.", index));
  }
  std::string& name = plugin->names.at(index);
  if (name.empty()) name = fmt::format("asynchronous fake {}", index);
  ep_device_info info{};
  info.name = text(name);
  info.fingerprint = {"async-1", 7};
  info.device_class = EP_DEVICE_CLASS_SOFTWARE;
  info.pool_count = 1;
  info.dtypes = ~uint64_t{0};
  std::fill(std::begin(info.pci), std::end(info.pci), -1);
  info.memory_handles = memory_handles;
  info.semaphore_handles = semaphore_handles;
  info.native_memory = EP_HANDLE_CUDA_POINTER;
  info.pools[0].flags = EP_POOL_FLAG_DEVICE_LOCAL;
  info.pools[0].size = async_control().memory.load();
  info.pools[0].minimum_alignment = 64;
  if (plugin->exclusive) info.pools[0].flags |= EP_POOL_FLAG_EXCLUSIVE;
  info.pools[0].copy_granularity = plugin->granularity;
  constexpr uint64_t reachable = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT;
  if (plugin->mapped) info.pools[0].flags |= reachable;
  if (plugin->pinned) {
    info.pool_count = 2;
    info.pools[1].flags = reachable | EP_POOL_FLAG_STAGING;
    info.pools[1].minimum_alignment = 64;
  }
  if (async_control().images) {
    info.pools[info.pool_count].flags = EP_POOL_FLAG_DEVICE_LOCAL | EP_POOL_FLAG_IMAGE;
    info.pools[info.pool_count++].minimum_alignment = 64;
  }
  provider::fill(out, info);
  return EP_STATUS_OK;
}

ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out_ops,
                      ep_error** error) {
  if (index >= async_control().devices.load()) {
    return fail(plugin->host, error, EP_STATUS_NOT_FOUND, fmt::format("there is no device {}.", index));
  }
  auto* device = new ep_device;
  device->host = plugin->host;
  device->plugin = plugin;
  device->index = index;
  ep_device_ops ops{};
  ops.device_close = device_close;
  ops.memory_allocate = memory_allocate;
  ops.memory_free = memory_free;
  ops.memory_map = memory_map;
  ops.stream_create = stream_create;
  ops.stream_destroy = stream_destroy;
  ops.stream_synchronize = stream_synchronize;
  ops.stream_flush = stream_flush;
  ops.stream_take_fault = stream_take_fault;
  ops.copy = copy;
  ops.upload = upload;
  ops.download = download;
  ops.peer_open = peer_open;
  ops.peer_copy = peer_copy;
  fill_event(&ops);
  fill_primitive(&ops);
  fill_interop(&ops);
  if (async_control().reference) fill_reference(&ops);
  if (async_control().graphs) fill_graph(&ops);
  if (async_control().lists) fill_lists(&ops);
  if (async_control().takes_modules) fill_modules(&ops);
  if (has_layouts()) fill_layouts(&ops);
  provider::fill(out_ops, ops);
  *out_device = device;
  return EP_STATUS_OK;
}

void shutdown(ep_plugin* plugin) { delete plugin; }

// Applies the settings of the configuration. Other values do not change.
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
  read("launch_us", control.launch_us);
  read("computes", control.computes);
  read("seed", control.seed);
  read("shadow", control.shadow);
  read("lazy", control.lazy);
  read("early", control.early);
  read("peers", control.peers);
  read("mapped", control.mapped);
  read("pinned", control.pinned);
  read("exclusive", control.exclusive);
  read("granularity", control.granularity);
  read("reference", control.reference);
  read("graphs", control.graphs);
  read("graph_seed", control.graph_seed);
  read("lists", control.lists);
  read("bindings", control.bindings);
  read("create_us", control.create_us);
  read("late_waits", control.late_waits);
  read("blobs", control.blobs);
  read("layouts", control.layout_seed);
  read("images", control.images);
  read("fail_allocation", control.fail_allocation);
  read("fail_launch", control.fail_launch);
}

}  // namespace

ep_status async_query(const ep_host* host, ep_plugin_ops* out, ep_error** error) {
  if (host->abi_major != EP_ABI_MAJOR || host->abi_minor != EP_ABI_MINOR) {
    return fail(host, error, EP_STATUS_VERSION, "the asynchronous fake was built for another version.");
  }
  configure(host);
  auto* plugin = new ep_plugin;
  plugin->host = host;
  plugin->peers = async_control().peers.load();
  plugin->mapped = async_control().mapped.load();
  plugin->pinned = async_control().pinned.load();
  plugin->exclusive = async_control().exclusive.load();
  plugin->granularity = async_control().granularity.load();
  ep_plugin_ops ops{};
  ops.abi_major = EP_ABI_MAJOR;
  ops.abi_minor = EP_ABI_MINOR;
  ops.plugin = plugin;
  ops.shutdown = shutdown;
  ops.device_count = device_count;
  ops.device_info = device_info;
  ops.device_open = device_open;
  provider::fill(out, ops);
  return EP_STATUS_OK;
}

}  // namespace tenon::fakes
