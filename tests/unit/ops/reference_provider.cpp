// A provider for tests: a synchronous, mapped device that computes every primitive by primitives/reference. It
// separates the tests of ops from the kernels of real devices.
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "primitives/reference/reference.h"
#include "sdk/provider/plugin.h"

EP_PLUGIN_NOTE("reference", "0.1.0", 0)

struct ep_plugin {
  const ep_host* host;
};
struct ep_device {
  const ep_host* host;
};
struct ep_memory {
  const ep_host* host;
  char* address;
};
struct ep_stream {
  const ep_host* host;
};
struct ep_primitive {
  const ep_host* host;
  ep_primitive_desc desc;
};

namespace tenon::provider::reference_device {
namespace {

constexpr uint64_t kAlignment = 64;

void device_close(ep_device* device) noexcept { destroy(device); }

ep_status memory_allocate(ep_device* device, uint32_t, uint64_t size, ep_memory** out_memory, ep_error** error) {
  auto* address = static_cast<char*>(std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment));
  if (address == nullptr)
    return fail_text(device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "There is no such block.");
  *out_memory = make<ep_memory>(device->host, device->host, address);
  return EP_STATUS_OK;
}

void memory_free(ep_device*, ep_memory* memory) noexcept {
  if (memory == nullptr) return;
  std::free(memory->address);
  destroy(memory);
}

ep_status memory_map(ep_device*, ep_memory* memory, void** out_pointer, ep_error**) {
  *out_pointer = memory->address;
  return EP_STATUS_OK;
}

ep_status stream_create(ep_device* device, const ep_stream_desc*, ep_stream** out_stream, ep_error**) {
  *out_stream = make<ep_stream>(device->host);
  return EP_STATUS_OK;
}
void stream_destroy(ep_device*, ep_stream* stream) noexcept { destroy(stream); }
ep_status stream_synchronize(ep_stream*, ep_error**) { return EP_STATUS_OK; }

char* address_of(ep_buffer buffer) { return buffer.memory->address + buffer.offset; }

ep_status copy(ep_stream*, ep_buffer dst, ep_buffer src, uint64_t size, ep_error**) {
  std::memcpy(address_of(dst), address_of(src), size);
  return EP_STATUS_OK;
}
ep_status upload(ep_stream*, ep_buffer dst, const void* src, uint64_t size, ep_error**) {
  std::memcpy(address_of(dst), src, size);
  return EP_STATUS_OK;
}
ep_status download(ep_stream*, void* dst, ep_buffer src, uint64_t size, ep_error**) {
  std::memcpy(dst, address_of(src), size);
  return EP_STATUS_OK;
}

ep_status primitive_support(ep_device*, const ep_primitive_desc*, ep_support_info* out_info, ep_error**) {
  ep_support_info info{};
  info.implementation = to_ep_string("reference");
  fill(out_info, info);
  return EP_STATUS_OK;
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out_primitive,
                           ep_primitive_info* out_info, ep_error**) {
  *out_primitive = make<ep_primitive>(device->host, device->host, *desc);
  ep_primitive_info info{};
  info.implementation = to_ep_string("reference");
  info.host_bytes = sizeof(ep_primitive);
  fill(out_info, info);
  return EP_STATUS_OK;
}

void primitive_destroy(ep_device*, ep_primitive* primitive) noexcept { destroy(primitive); }

ep_status primitive_launch(ep_primitive* primitive, ep_stream*, const ep_launch* launch, ep_fault* out_fault,
                           ep_error** error) {
  void* operands[EP_MAX_OPERANDS] = {};
  for (uint32_t i = 0; i < launch->operand_count; ++i) {
    if (launch->operands[i].memory != nullptr) operands[i] = address_of(launch->operands[i]);
  }
  ep_fault fault{};
  const Status status = reference::run(primitive->desc, operands, launch->scalars, launch->scalar_count, &fault);
  if (status.ok()) return EP_STATUS_OK;
  if (status.code() == Code::fault && out_fault != nullptr) *out_fault = fault;
  return fail_text(primitive->host, error, static_cast<ep_status>(status.code()), status.message().c_str());
}

ep_status device_count(ep_plugin*, uint32_t* out_count, ep_error**) {
  *out_count = 1;
  return EP_STATUS_OK;
}

ep_status device_info(ep_plugin*, uint32_t, ep_device_info* out_info, ep_error**) {
  ep_device_info info{};
  info.name = to_ep_string("Reference kernels");
  info.fingerprint = to_ep_string("reference");
  info.device_class = EP_DEVICE_CLASS_CPU;
  info.flags = EP_DEVICE_FLAG_SYNCHRONOUS;
  info.dtypes = ~UINT64_C(1);
  for (int64_t& part : info.pci) part = -1;
  info.pool_count = 1;
  info.pools[0].flags = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT | EP_POOL_FLAG_HOST_CACHED;
  info.pools[0].minimum_alignment = kAlignment;
  fill(out_info, info);
  return EP_STATUS_OK;
}

ep_status device_open(ep_plugin* plugin, uint32_t, ep_device** out_device, ep_device_ops* out_ops, ep_error**) {
  ep_device_ops ops{};
  ops.device_close = device_close;
  ops.memory_allocate = entry<memory_allocate>;
  ops.memory_free = memory_free;
  ops.memory_map = entry<memory_map>;
  ops.stream_create = entry<stream_create>;
  ops.stream_destroy = stream_destroy;
  ops.stream_synchronize = entry<stream_synchronize>;
  ops.copy = entry<copy>;
  ops.upload = entry<upload>;
  ops.download = entry<download>;
  ops.primitive_support = entry<primitive_support>;
  ops.primitive_create = entry<primitive_create>;
  ops.primitive_destroy = primitive_destroy;
  ops.primitive_launch = entry<primitive_launch>;
  *out_device = make<ep_device>(plugin->host);
  fill(out_ops, ops);
  return EP_STATUS_OK;
}

void fill_plugin(ep_plugin_ops* ops) {
  ops->device_count = entry<device_count>;
  ops->device_info = entry<device_info>;
  ops->device_open = entry<device_open>;
}

}  // namespace
}  // namespace tenon::provider::reference_device

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return tenon::provider::answer_query(host, out_ops, error, tenon::provider::reference_device::fill_plugin);
}
