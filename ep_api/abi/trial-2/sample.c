// sample.c: a whole Tenon provider in one file, and the place to start your own from.
//
// A provider tells Tenon about devices. It owes the host memory, a stream and copies; whatever it cannot compute, the
// host computes another way (out of other primitives, or on the CPU), so with an empty list of primitives every program
// runs already, and each primitive added makes something faster. This one keeps its "device memory" in host memory,
// completes every call before it returns (EP_DEVICE_FLAG_SYNCHRONOUS: no events, one stream), and computes relu and add
// over f32.
//
// Build it with the CMakeLists.txt beside this file, copy libtenon_sample.so into the plug-in folder (<libdir>/tenon,
// or a folder named by TENON_PLUGIN_PATH), and `tenon devices` lists sample:0. Nothing is registered, nothing rebuilt.
// The contract is ep_api/ep_api.h; every function below is a slot described there.
#include "ep_api/ep_api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The loader reads this note from the file before it runs any of our code: who we are, and which ABI we were built for.
EP_PLUGIN_NOTE("sample", "1.0.0", EP_NOTE_FLAG_UNLOADABLE)

// ---- Objects. The host sees opaque handles; what is inside is ours. There are no globals: a host may open us twice.
// ----

struct ep_plugin {
  const ep_host* host;  // valid until shutdown returns
};
struct ep_device {
  const ep_host* host;
};
struct ep_memory {
  char* bytes;
};
struct ep_primitive {
  ep_primitive_desc desc;
};

// ---- Errors. Made by the host, in a full sentence with the values in it, and only if the caller asked for one. ----

static ep_string text(const char* s) { return (ep_string){s, strlen(s)}; }

__attribute__((format(printf, 4, 5))) static ep_status fail(const ep_host* host, ep_error** error, ep_status status,
                                                            const char* format, ...) {
  if (error) {
    char sentence[256];
    va_list values;
    va_start(values, format);
    vsnprintf(sentence, sizeof sentence, format, values);
    va_end(values);
    *error = host->error_make(host, status, text(sentence), text(""));
  }
  return status;
}

// Our small objects come from the host too, so that a leak shows up with our name on it.
static void* make(const ep_host* host, size_t size) {
  void* object = host->allocate(host, size, 16);
  return object ? memset(object, 0, size) : NULL;
}

// Copies a table or an info into the struct the host gave, no further than the host's struct_size says: a host built
// with a shorter struct is served, one with a longer struct finds zeros after ours, which mean the old behaviour.
static void hand_out(void* to, void* from, uint32_t size) {
  uint32_t room;
  memcpy(&room, to, sizeof room);
  if (size > room) size = room;
  memcpy(from, &size, sizeof size);
  memcpy(to, from, size);
}

// ---- Memory. The host asks for few, large blocks and divides them itself, so this need not be clever. ----

static ep_status memory_allocate(ep_device* device, uint32_t pool, uint64_t size, ep_memory** out, ep_error** error) {
  if (pool != 0) return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT, "There is only pool 0, no %u.", pool);
  if (size > PTRDIFF_MAX - 64)
    return fail(device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "%llu bytes are more than can be addressed.",
                (unsigned long long)size);
  ep_memory* memory = make(device->host, sizeof *memory);
  if (!memory) return fail(device->host, error, EP_STATUS_OUT_OF_HOST_MEMORY, "The host has no memory for a handle.");
  memory->bytes = aligned_alloc(64, (size + 63) / 64 * 64);
  if (!memory->bytes) {
    device->host->release(device->host, memory, sizeof *memory);
    return fail(device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "The system has no block of %llu bytes.",
                (unsigned long long)size);
  }
  *out = memory;
  return EP_STATUS_OK;
}

static void memory_free(ep_device* device, ep_memory* memory) {
  if (!memory) return;
  free(memory->bytes);
  device->host->release(device->host, memory, sizeof *memory);
}

// Our memory has a host address, and saying so spares the host every copy where it computes something for us.
static ep_status memory_map(ep_device* device, ep_memory* memory, void** out_pointer, ep_error** error) {
  (void)device, (void)error;
  *out_pointer = memory->bytes;
  return EP_STATUS_OK;
}

static void* at(ep_buffer buffer) { return buffer.memory->bytes + buffer.offset; }

// ---- The stream, and transfers on it. A device with a real queue would enqueue here, and would have events. ----

static ep_status stream_create(ep_device* device, ep_stream** out_stream, ep_error** error) {
  (void)error;
  *out_stream = (ep_stream*)device;  // the one stream of a synchronous device has no state: any thread may launch on it
  return EP_STATUS_OK;
}

static void stream_destroy(ep_device* device, ep_stream* stream) { (void)device, (void)stream; }

static ep_status stream_synchronize(ep_stream* stream, ep_error** error) {
  return (void)stream, (void)error, EP_STATUS_OK;
}

static ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error** error) {
  (void)stream, (void)error;
  memcpy(at(dst), at(src), size);
  return EP_STATUS_OK;
}

static ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error** error) {
  (void)stream, (void)error;
  memcpy(at(dst), src, size);
  return EP_STATUS_OK;
}

static ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error** error) {
  (void)stream, (void)error;
  memcpy(dst, at(src), size);
  return EP_STATUS_OK;
}

// ---- Primitives. `primitive_support` is the honest part: it says no to all it has not been written for, by name and
// value, and the host puts that reason into its placement report. What it has never heard of (a kind added next year,
// an extension, a flag) must be a no as well. The host folds dims before it asks: dense tensors of any shape come as
// rank 1. ----

static ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out_info,
                                   ep_error** error) {
  const ep_host* host = device->host;
  const ep_status no = EP_STATUS_UNSUPPORTED;
  int relu = desc->kind == EP_PRIMITIVE_unary && desc->attributes.unary.op == EP_UNARY_relu;
  int add = desc->kind == EP_PRIMITIVE_binary && desc->attributes.binary.op == EP_BINARY_add;
  if (!relu && !add)
    return fail(host, error, no, "sample has relu and add only, not kind %d, op %d.", desc->kind,
                desc->kind == EP_PRIMITIVE_unary || desc->kind == EP_PRIMITIVE_binary ? desc->attributes.unary.op : 0);
  if (desc->extensions[0] != 0 || desc->epilogue_count != 0 || desc->baked_scalars != 0 ||
      (desc->flags & ~EP_PRIMITIVE_FLAG_DETERMINISTIC) != 0)
    return fail(host, error, no, "sample knows no extensions, epilogues, baked scalars or flags 0x%llx.",
                (unsigned long long)desc->flags);
  if ((desc->accumulate_dtype != 0 && desc->accumulate_dtype != EP_DTYPE_f32) || desc->precision > EP_PRECISION_FAST)
    return fail(host, error, no, "sample computes in f32, not in dtype %d or at precision %d.", desc->accumulate_dtype,
                desc->precision);
  static const int32_t roles[] = {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B};
  uint32_t count = relu ? 2 : 3;
  if (desc->operand_count != count)
    return fail(host, error, no, "sample takes %u operands here, not %u.", count, desc->operand_count);
  for (uint32_t i = 0; i < count; i++) {
    const ep_operand_desc* operand = &desc->operands[i];
    if (operand->role != roles[i])
      return fail(host, error, no, "sample expects role %d as operand %u, not role %d.", roles[i], i, operand->role);
    if (operand->dtype != EP_DTYPE_f32)
      return fail(host, error, no, "sample computes f32; operand %u has dtype %d.", i, operand->dtype);
    if ((operand->flags & ~EP_OPERAND_FLAG_CONSTANT) != 0)
      return fail(host, error, no, "sample reads operand %u from memory; its flags are 0x%llx.", i,
                  (unsigned long long)operand->flags);
    if (operand->rank != 1)
      return fail(host, error, no, "sample loops over one dim; operand %u has rank %d.", i, operand->rank);
  }
  // Yes, on these terms: one primitive serves every length and stride, which then come with the launch.
  ep_support_info info = {.struct_type = EP_STRUCT_SUPPORT_INFO, .implementation = text("plain")};
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
#if EP_ABI_TARGET_MINOR >= 0x7002
  info.trial_cost = 66;
#endif
  hand_out(out_info, &info, sizeof info);
  return EP_STATUS_OK;
}

static ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out_primitive,
                                  ep_primitive_info* out_info, ep_error** error) {
  ep_support_info terms = {.struct_size = sizeof terms, .struct_type = EP_STRUCT_SUPPORT_INFO};
  ep_status status = primitive_support(device, desc, &terms, error);
  if (status != EP_STATUS_OK) return status;
  ep_primitive* primitive = make(device->host, sizeof *primitive);
  if (!primitive)
    return fail(device->host, error, EP_STATUS_OUT_OF_HOST_MEMORY, "The host has no memory for a primitive.");
  primitive->desc = *desc;
  ep_primitive_info info = {.struct_type = EP_STRUCT_PRIMITIVE_INFO, .implementation = terms.implementation};
#if EP_ABI_TARGET_MINOR >= 0x7002
  info.trial_bytes = 77;
#endif
  info.host_bytes = sizeof *primitive;
  hand_out(out_info, &info, sizeof info);
  *out_primitive = primitive;
  return EP_STATUS_OK;
}

static void primitive_destroy(ep_device* device, ep_primitive* primitive) {
  if (primitive) device->host->release(device->host, primitive, sizeof *primitive);
}

// The kernel. relu keeps NaN, as its row in scalar_ops.def asks (ep_max is NaN if either argument is).
static ep_status primitive_launch(ep_primitive* primitive, ep_stream* stream, const ep_launch* launch,
                                  ep_fault* out_fault, ep_error** error) {
  (void)stream, (void)out_fault, (void)error;
  int64_t stride[3] = {0, 0, 0}, n = 0;
  for (uint32_t i = 0; i < launch->operand_count; i++) {
    const ep_operand_desc* operand = &primitive->desc.operands[i];
    stride[i] = launch->shapes ? launch->shapes[i].strides[0] : operand->strides[0];
    if (i == 0) n = launch->shapes ? launch->shapes[0].dims[0] : operand->dims[0];
  }
  float* dst = at(launch->operands[0]);
  const float* a = at(launch->operands[1]);
  if (primitive->desc.kind == EP_PRIMITIVE_unary) {
    for (int64_t i = 0; i < n; i++) {
      float x = a[i * stride[1]];
      dst[i * stride[0]] = x < 0.0f ? 0.0f : x;
    }
  } else {
    const float* b = at(launch->operands[2]);
    for (int64_t i = 0; i < n; i++) dst[i * stride[0]] = a[i * stride[1]] + b[i * stride[2]];
  }
  return EP_STATUS_OK;
}

// ---- The device, the plug-in, and the one exported symbol. ----

static ep_status device_count(ep_plugin* plugin, uint32_t* out_count, ep_error** error) {
  (void)plugin, (void)error;
  *out_count = 1;
  return EP_STATUS_OK;
}

static ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out_info, ep_error** error) {
  if (index != 0) return fail(plugin->host, error, EP_STATUS_NOT_FOUND, "There is no device %u, only device 0.", index);
  ep_device_info info = {.struct_type = EP_STRUCT_DEVICE_INFO};
  info.name = text("Sample device in host memory");
  info.fingerprint = text("sample-1");
  info.device_class = EP_DEVICE_CLASS_SOFTWARE;  // shown, never picked unless asked for
  info.flags = EP_DEVICE_FLAG_SYNCHRONOUS;
  for (int32_t dtype = EP_DTYPE_bool; dtype <= EP_DTYPE_u4; dtype++) info.dtypes |= UINT64_C(1) << dtype;
  for (int i = 0; i < 4; i++) info.pci[i] = -1;
  info.threads = 1;
  info.pool_count = 1;
  info.pools[0].flags = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT | EP_POOL_FLAG_HOST_CACHED;
  info.pools[0].minimum_alignment = 64;
#if EP_ABI_TARGET_MINOR >= 0x7002
  info.trial_units = 55;
#endif
  hand_out(out_info, &info, sizeof info);
  return EP_STATUS_OK;
}

static void device_close(ep_device* device) {
  if (device) device->host->release(device->host, device, sizeof *device);
}

#if EP_ABI_TARGET_MINOR >= 0x7002

static ep_status trial_echo(ep_device* device, int64_t value, int64_t* out_value, ep_error** error) {
  (void)error;
  const ep_host* host = device->host;
  int newer = host->struct_size >= offsetof(ep_host, trial_double) + sizeof host->trial_double && host->trial_double;
  *out_value = newer ? host->trial_double(host, value) : value;
  return EP_STATUS_OK;
}

#endif
static ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out_ops,
                             ep_error** error) {
  if (index != 0) return fail(plugin->host, error, EP_STATUS_NOT_FOUND, "There is no device %u, only device 0.", index);
  ep_device* device = make(plugin->host, sizeof *device);
  if (!device) return fail(plugin->host, error, EP_STATUS_OUT_OF_HOST_MEMORY, "The host has no memory for a device.");
  device->host = plugin->host;
  // Slots not named are NULL: the host does without them.
  ep_device_ops ops = {.struct_type = EP_STRUCT_DEVICE_OPS,
                       .device_close = device_close,
                       .memory_allocate = memory_allocate,
                       .memory_free = memory_free,
                       .memory_map = memory_map,
                       .stream_create = stream_create,
                       .stream_destroy = stream_destroy,
                       .stream_synchronize = stream_synchronize,
                       .copy = copy,
                       .upload = upload,
                       .download = download,
                       .primitive_support = primitive_support,
                       .primitive_create = primitive_create,
                       .primitive_destroy = primitive_destroy,
                       .primitive_launch = primitive_launch};
#if EP_ABI_TARGET_MINOR >= 0x7002
  ops.trial_echo = trial_echo;
#endif
  hand_out(out_ops, &ops, sizeof ops);
  *out_device = device;
  return EP_STATUS_OK;
}

static void plugin_shutdown(ep_plugin* plugin) {
  if (plugin) plugin->host->release(plugin->host, plugin, sizeof *plugin);
}

#if EP_ABI_TARGET_MINOR >= 0x7002

static int64_t trial_greet(ep_plugin* plugin, int64_t value) { return plugin ? value + 1 : 0; }

#endif
ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  if (host->abi_major != EP_ABI_MAJOR || !EP_ABI_MINORS_AGREE(host->abi_minor, EP_ABI_MINOR))
    return fail(host, error, EP_STATUS_VERSION, "sample speaks ABI %d.%d, the host %u.%u.", EP_ABI_MAJOR, EP_ABI_MINOR,
                host->abi_major, host->abi_minor);
  ep_plugin* plugin = make(host, sizeof *plugin);
  if (!plugin) return fail(host, error, EP_STATUS_OUT_OF_HOST_MEMORY, "The host has no memory for a plug-in.");
  plugin->host = host;
  ep_plugin_ops ops = {.struct_type = EP_STRUCT_PLUGIN_OPS, .abi_major = EP_ABI_MAJOR, .abi_minor = EP_ABI_MINOR};
  ops.plugin = plugin;
  ops.shutdown = plugin_shutdown;
  ops.device_count = device_count;
  ops.device_info = device_info;
  ops.device_open = device_open;
#if EP_ABI_TARGET_MINOR >= 0x7002
  ops.trial_greet = trial_greet;
#endif
  hand_out(out_ops, &ops, sizeof ops);
  return EP_STATUS_OK;
}
