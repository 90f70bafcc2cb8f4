// See README.md beside this file.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "primitives/descriptor/descriptor.h"
#include "primitives/reference/reference.h"
#include "primitives/table/table.h"
#include "sdk/provider/entry.h"
#include "sdk/provider/handle.h"
#include "sdk/provider/negotiate.h"

EP_PLUGIN_NOTE("mirror", "0.1.0", 0)

struct ep_plugin {
  const ep_host* host;
  std::string mode;  // ",word,word,"
};

struct ep_device {
  const ep_host* host;
  std::string mode;

  bool is(std::string_view word) const { return mode.find("," + std::string(word) + ",") != std::string::npos; }
};

struct ep_memory {
  const ep_host* host;
  char* address;
  uint64_t size;
};

struct ep_stream {
  const ep_host* host;
  bool async;
  std::mutex mutex = {};  // waits come from any thread, also while another one launches
  std::deque<std::function<void()>> pending = {};
  std::deque<ep_fault> faults = {};

  void submit(std::function<void()> work) {
    if (!async) return work();
    const std::lock_guard lock(mutex);
    pending.push_back(std::move(work));
  }
  void drain() {
    const std::lock_guard lock(mutex);
    for (; !pending.empty(); pending.pop_front()) pending.front()();
  }
};

struct ep_event {
  const ep_host* host;
  ep_stream* stream;
};

struct ep_primitive {
  const ep_host* host;
  ep_device* device;
  ep_primitive_desc desc;
  uint32_t packed;  // 1 + index of the operand, as in ep_primitive_info
};

namespace tenon::provider::mirror {
namespace {

constexpr uint64_t alignment = 256;
constexpr uint64_t workspace_bytes = 100;
constexpr uint64_t scratch_bytes = 64;

char* address_of(ep_buffer buffer) {
  return buffer.memory == nullptr ? nullptr : buffer.memory->address + buffer.offset;
}

// --- memory and streams ---

ep_status memory_allocate(ep_device* device, uint32_t, uint64_t size, ep_memory** out_memory, ep_error**) {
  auto* address = static_cast<char*>(std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment));
  if (address == nullptr) throw std::bad_alloc();
  std::memset(address, 0x3c, size);
  *out_memory = make<ep_memory>(device->host, device->host, address, size);
  return EP_STATUS_OK;
}

void memory_free(ep_device*, ep_memory* memory) noexcept {
  if (memory == nullptr) return;
  std::free(memory->address);
  destroy(memory);
}

ep_status stream_create(ep_device* device, ep_stream** out_stream, ep_error**) {
  *out_stream = make<ep_stream>(device->host, device->host, device->is("async"));
  return EP_STATUS_OK;
}

void stream_destroy(ep_device* device, ep_stream* stream) noexcept {
  if (device->is("leak")) return;
  destroy(stream);
}

ep_status stream_synchronize(ep_stream* stream, ep_error**) {
  stream->drain();
  return EP_STATUS_OK;
}

ep_status stream_take_fault(ep_stream* stream, ep_fault* out_fault, ep_error** error) {
  const std::lock_guard lock(stream->mutex);
  if (stream->faults.empty()) return fail_text(stream->host, error, EP_STATUS_NOT_FOUND, "There is no fault.");
  *out_fault = stream->faults.front();
  stream->faults.pop_front();
  return EP_STATUS_OK;
}

ep_status move_bytes(ep_stream* stream, void* dst, const void* src, uint64_t size) {
  stream->submit([=] { std::memcpy(dst, src, size); });
  return EP_STATUS_OK;
}

ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error**) {
  return move_bytes(stream, address_of(dst), address_of(src), size);
}
ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error**) {
  return move_bytes(stream, address_of(dst), src, size);
}
ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error**) {
  return move_bytes(stream, dst, address_of(src), size);
}

ep_status event_create(ep_device* device, ep_event** out_event, ep_error**) {
  *out_event = make<ep_event>(device->host);
  return EP_STATUS_OK;
}
void event_destroy(ep_device*, ep_event* event) noexcept { destroy(event); }
ep_status event_record(ep_event* event, ep_stream* stream, ep_error**) {
  event->stream = stream;
  return EP_STATUS_OK;
}
ep_status event_query(ep_event* event, ep_error**) {
  event->stream->drain();
  return EP_STATUS_OK;
}
ep_status event_host_wait(ep_event* event, uint64_t, ep_error** error) { return event_query(event, error); }
ep_status stream_wait_event(ep_stream*, ep_event* event, ep_error** error) { return event_query(event, error); }

// --- primitives ---

ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out_info,
                            ep_error** error) {
  if (const Status status = descriptor::check_descriptor(*desc); !status.ok()) {
    return fail_text(device->host, error, static_cast<ep_status>(status.code()), status.message());
  }
  ep_support_info info{};
  info.implementation = to_ep_string("reference");
  if (device->is("any")) info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  if (device->is("bakes")) {
    info.baked_scalars = 0xff;
    std::fill_n(info.alignment, EP_MAX_OPERANDS, 64);
  }
  fill(out_info, info);
  return EP_STATUS_OK;
}

uint64_t bytes_of(const ep_operand_desc& operand) {
  int64_t last = 0;
  for (int32_t axis = 0; axis < operand.rank; ++axis) last += (operand.dims[axis] - 1) * operand.strides[axis];
  return static_cast<uint64_t>(dtype_bytes(static_cast<DType>(operand.dtype), last + 1));
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out_primitive,
                           ep_primitive_info* out_info, ep_error**) {
  ep_primitive_info info{};
  info.implementation = to_ep_string("reference");
  info.workspace_bytes = workspace_bytes;
  info.scratch_bytes = scratch_bytes;
  const bool packs = device->is("packs") && !descriptor::has_any(*desc);
  for (uint32_t i = 0; i < desc->operand_count && packs; ++i) {
    if ((desc->operands[i].flags & EP_OPERAND_FLAG_CONSTANT) == 0) continue;
    info.pack_operand = i + 1;
    info.pack_bytes = bytes_of(desc->operands[i]);
  }
  *out_primitive = make<ep_primitive>(device->host, device->host, device, *desc, info.pack_operand);
  fill(out_info, info);
  return EP_STATUS_OK;
}

void primitive_destroy(ep_device*, ep_primitive* primitive) noexcept { destroy(primitive); }

ep_status primitive_pack(ep_primitive* primitive, ep_stream* stream, ep_buffer dst, ep_buffer src, ep_error**) {
  const uint64_t size = bytes_of(primitive->desc.operands[primitive->packed - 1]);
  stream->submit([=] {
    for (uint64_t i = 0; i < size; ++i) address_of(dst)[i] = static_cast<char>(~address_of(src)[i]);
  });
  return EP_STATUS_OK;
}

// A launch and all it borrowed, kept until it runs.
struct Work {
  const ep_device* device;
  ep_primitive_desc desc;
  std::vector<void*> operands;
  std::vector<ep_scalar> scalars;
  std::vector<char> unpacked;
  char* workspace;
  char* scratch;
  ep_fault fault;
  uint64_t tag;

  Status run();
  void spoil();
};

Status Work::run() {
  if (std::any_of(scratch, scratch + scratch_bytes, [](char byte) { return byte != 0; })) {
    return Status(Code::internal, "The scratch is not zero.");
  }
  std::memset(workspace, 0x77, workspace_bytes);
  const bool normalises = desc.kind == EP_PRIMITIVE_layer_norm || desc.kind == EP_PRIMITIVE_batch_norm;
  if (normalises && device->is("wrong_epsilon") && !scalars.empty()) scalars[0].value.f64 = 0.5;
  const Status status =
      reference::run(desc, operands.data(), scalars.data(), static_cast<uint32_t>(scalars.size()), &fault);
  fault.tag = tag;
  spoil();
  return device->is("no_fault") && status.code() == Code::fault ? Status() : status;
}

// The defect asked for, if any.
void Work::spoil() {
  auto* first = static_cast<char*>(operands[0]);
  auto* last = static_cast<char*>(operands[desc.operand_count - 1]);
  if (device->is("wrong_value")) first[0] = static_cast<char>(first[0] ^ 0x40);
  if (device->is("past_end")) first[bytes_of(desc.operands[0])] = 1;
  if (device->is("writes_input") && last != nullptr) last[0] = static_cast<char>(last[0] ^ 1);
  if (device->is("dirty_scratch")) scratch[3] = 1;
  if (device->is("other_fault")) fault.operand = 0;
}

Work work_of(const ep_primitive& primitive, const ep_launch& launch) {
  Work work = {
      primitive.device, primitive.desc, {}, {}, {}, address_of(launch.workspace), address_of(launch.scratch), {},
      launch.tag};
  for (uint32_t i = 0; i < launch.operand_count; ++i) {
    work.operands.push_back(address_of(launch.operands[i]));
    if (launch.shapes == nullptr) continue;
    ep_operand_desc& operand = work.desc.operands[i];
    std::copy_n(launch.shapes[i].dims, operand.rank, operand.dims);
    std::copy_n(launch.shapes[i].strides, operand.rank, operand.strides);
    if (work.device->is("ignores_shapes") && operand.dims[0] > 1) --operand.dims[0];
  }
  work.scalars.assign(launch.scalars, launch.scalars + launch.scalar_count);
  return work;
}

ep_status primitive_launch(ep_primitive* primitive, ep_stream* stream, const ep_launch* launch, ep_fault* out_fault,
                           ep_error** error) {
  ep_status status = EP_STATUS_OK;
  const ep_host* host = primitive->host;
  const bool waits = !stream->async;
  stream->submit([=, work = work_of(*primitive, *launch), packed = primitive->packed, &status]() mutable {
    if (packed != 0) {
      const auto* bytes = static_cast<const char*>(work.operands[packed - 1]);
      const uint64_t size = bytes_of(work.desc.operands[packed - 1]);
      for (uint64_t i = 0; i < size; ++i) work.unpacked.push_back(static_cast<char>(~bytes[i]));
      work.operands[packed - 1] = work.unpacked.data();
    }
    const Status ran = work.run();
    if (ran.ok()) return;
    if (waits) {
      if (out_fault != nullptr) *out_fault = work.fault;
      status = fail_text(host, error, static_cast<ep_status>(ran.code()), ran.message());
    } else {
      stream->faults.push_back(work.fault);
    }
  });
  return status;
}

// --- the device and the plug-in ---

void device_close(ep_device* device) noexcept { destroy(device); }

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
  ops.primitive_support = entry<primitive_support>;
  ops.primitive_create = entry<primitive_create>;
  ops.primitive_destroy = primitive_destroy;
  ops.primitive_launch = entry<primitive_launch>;
  ops.primitive_pack = entry<primitive_pack>;
  return ops;
}

void shutdown(ep_plugin* plugin) noexcept { destroy(plugin); }

ep_status device_count(ep_plugin*, uint32_t* out_count, ep_error**) {
  *out_count = 1;
  return EP_STATUS_OK;
}

ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out_info, ep_error** error) {
  if (index != 0) return fail(plugin->host, error, EP_STATUS_NOT_FOUND, "There is no device %u.", index);
  ep_device_info info{};
  info.name = to_ep_string("Mirror");
  info.fingerprint = to_ep_string("mirror");
  info.device_class = EP_DEVICE_CLASS_SOFTWARE;
  if (plugin->mode.find(",async,") == std::string::npos) info.flags = EP_DEVICE_FLAG_SYNCHRONOUS;
  info.dtypes = ~uint64_t{0};
  std::fill_n(info.pci, 4, -1);
  info.pool_count = 1;
  info.pools[0].minimum_alignment = alignment;
  fill(out_info, info);
  return EP_STATUS_OK;
}

ep_status device_open(ep_plugin* plugin, uint32_t, ep_device** out_device, ep_device_ops* out_ops, ep_error**) {
  *out_device = make<ep_device>(plugin->host, plugin->host, plugin->mode);
  fill(out_ops, device_ops());
  return EP_STATUS_OK;
}

ep_status query(const ep_host* host, ep_plugin_ops* out_ops) {
  ep_string mode{};
  const bool set = host->config_get(host, to_ep_string("mode"), &mode) == EP_STATUS_OK;
  ep_plugin_ops ops{};
  ops.abi_major = EP_ABI_MAJOR;
  ops.abi_minor = EP_ABI_MINOR;
  ops.plugin = make<ep_plugin>(host, host, "," + (set ? std::string(to_view(mode)) : std::string()) + ",");
  ops.shutdown = shutdown;
  ops.device_count = entry<device_count>;
  ops.device_info = entry<device_info>;
  ops.device_open = entry<device_open>;
  fill(out_ops, ops);
  return EP_STATUS_OK;
}

}  // namespace
}  // namespace tenon::provider::mirror

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) try {
  const ep_status status = tenon::provider::negotiate(host, out_ops, error);
  return status == EP_STATUS_OK ? tenon::provider::mirror::query(host, out_ops) : status;
} catch (...) {
  return tenon::provider::caught(host, error);
}
