/* A provider with nothing wrong, in the fewest lines: one synchronous device whose memory is the host's. */
#ifndef TENON_TESTS_FAKES_BROKEN_SOUND_H_
#define TENON_TESTS_FAKES_BROKEN_SOUND_H_

#include <stdlib.h>
#include <string.h>

#include "ep_api/ep_api.h"

#define UNUSED(x) ((void)(x))

static ep_string text(const char* data) {
  ep_string string = {data, strlen(data)};
  return string;
}

static void close_device(ep_device* device) { UNUSED(device); }
static ep_status allocate(ep_device* device, uint32_t pool, uint64_t size, ep_memory** out, ep_error** error) {
  UNUSED(device), UNUSED(pool), UNUSED(error);
  *out = (ep_memory*)aligned_alloc(64, (size + 63) / 64 * 64);
  return *out ? EP_STATUS_OK : EP_STATUS_OUT_OF_DEVICE_MEMORY;
}
static void release(ep_device* device, ep_memory* memory) {
  UNUSED(device);
  free(memory);
}
static ep_status map(ep_device* device, ep_memory* memory, void** out, ep_error** error) {
  UNUSED(device), UNUSED(error);
  *out = memory;
  return EP_STATUS_OK;
}
static char* address(ep_buffer buffer) { return (char*)buffer.memory + buffer.offset; }
static ep_status stream_create(ep_device* device, const ep_stream_desc* desc, ep_stream** out, ep_error** error) {
  UNUSED(desc), UNUSED(error);
  *out = (ep_stream*)device;
  return EP_STATUS_OK;
}
static void stream_destroy(ep_device* device, ep_stream* stream) { UNUSED(device), UNUSED(stream); }
static ep_status synchronize(ep_stream* stream, ep_error** error) {
  UNUSED(stream), UNUSED(error);
  return EP_STATUS_OK;
}
static ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error** error) {
  UNUSED(stream), UNUSED(error);
  memcpy(address(dst), address(src), size);
  return EP_STATUS_OK;
}
static ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error** error) {
  UNUSED(stream), UNUSED(error);
  memcpy(address(dst), src, size);
  return EP_STATUS_OK;
}
static ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error** error) {
  UNUSED(stream), UNUSED(error);
  memcpy(dst, address(src), size);
  return EP_STATUS_OK;
}
static ep_status support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out, ep_error** error) {
  UNUSED(device), UNUSED(desc), UNUSED(out), UNUSED(error);
  return EP_STATUS_UNSUPPORTED;
}

static void shut_down(ep_plugin* plugin) { UNUSED(plugin); }
static ep_status device_count(ep_plugin* plugin, uint32_t* out, ep_error** error) {
  UNUSED(plugin), UNUSED(error);
#ifdef BEFORE_DEVICE_COUNT
  BEFORE_DEVICE_COUNT;
#endif
  *out = 1;
  return EP_STATUS_OK;
}
static ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out, ep_error** error) {
  UNUSED(plugin), UNUSED(index), UNUSED(error);
  out->name = text("a sound device");
  out->fingerprint = text("sound 1");
  out->device_class = EP_DEVICE_CLASS_CPU;
  out->flags = EP_DEVICE_FLAG_SYNCHRONOUS;
  out->dtypes = ~UINT64_C(0);
  out->pci[0] = out->pci[1] = out->pci[2] = out->pci[3] = -1;
  out->pool_count = 1;
  out->pools[0].flags = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT | EP_POOL_FLAG_HOST_CACHED;
  out->pools[0].minimum_alignment = 64;
  return EP_STATUS_OK;
}
static ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out, ep_device_ops* ops, ep_error** error) {
  static char device;
  UNUSED(plugin), UNUSED(index), UNUSED(error);
  ops->device_close = close_device;
  ops->memory_allocate = allocate;
  ops->memory_free = release;
  ops->memory_map = map;
  ops->stream_create = stream_create;
  ops->stream_destroy = stream_destroy;
  ops->stream_synchronize = synchronize;
  ops->copy = copy;
  ops->upload = upload;
  ops->download = download;
  ops->primitive_support = support;
#ifdef BREAK_DEVICE_OPS
  BREAK_DEVICE_OPS(ops);
#endif
  *out = (ep_device*)&device;
  return EP_STATUS_OK;
}

static inline ep_status sound_query(const ep_host* host, ep_plugin_ops* out, ep_error** error) {
  UNUSED(host), UNUSED(error);
  out->abi_major = EP_ABI_MAJOR;
  out->abi_minor = EP_ABI_MINOR;
  out->shutdown = shut_down;
  out->device_count = device_count;
  out->device_info = device_info;
  out->device_open = device_open;
  return EP_STATUS_OK;
}

#endif
