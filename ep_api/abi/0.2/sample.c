// sample.c: a complete Tenon provider in one file. Use it as the start of your own provider.
//
// A provider must offer memory, a stream and copies. If the provider does not support a primitive, the host computes
// the op in another way: from other primitives, or on the CPU. So a provider without primitives already runs every
// program, and each primitive makes some programs faster. This provider uses host memory as its "device memory",
// completes every call before it returns (a SYNCHRONOUS device: no events, one stream), and computes relu and add.
// README.md says how to build and check it. ep_api/ep_api.h is the contract: it describes each function below that has
// the name of a slot.
#define _GNU_SOURCE  // for sample_modules.h
#include "ep_api/ep_api.h"
#include "ep_api/ep_names.h"  // names of ids, for messages

#include <fenv.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The loader reads this note (name, version, ABI) from the file before it runs any of our code.
// Flags 0: the library is never unloaded. This is required if it starts threads (a BLAS, OpenMP).
EP_PLUGIN_NOTE("sample", "1.0.0", 0)

// ---- Objects. For the host they are opaque handles. No globals, because a host may start this plug-in twice. ----

struct ep_plugin {
  const ep_host* host;  // valid until shutdown returns
};
struct ep_device {
  const ep_host* host;
};
struct ep_memory {
  char* bytes;
};
typedef void run_function(const ep_primitive* primitive, const ep_launch* launch);
struct ep_primitive {
  ep_primitive_desc desc;
  run_function* run;
};

// ---- Errors. The host makes them. We give a full sentence with its values, if the caller wants an error at all. ----

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

// Allocates a small object with the host's allocator, so that a leak is reported with our name. On failure returns NULL
// and sets `error`.
static void* make(const ep_host* host, size_t size, ep_error** error) {
  void* object = host->allocate(host, size, 16);
  if (!object) fail(host, error, EP_STATUS_OUT_OF_HOST_MEMORY, "The host has no %zu bytes for an object.", size);
  return object ? memset(object, 0, size) : NULL;
}

// Copies a table or an info into the host's struct, but at most struct_size bytes, so that a host with a shorter struct
// works. In a longer struct the rest is zero, which means the old behaviour.
static void hand_out(void* to, void* from, uint32_t size) {
  uint32_t room;
  memcpy(&room, to, sizeof room);
  if (size > room) size = room;
  memcpy(from, &size, sizeof size);
  memcpy(to, from, size);
}

// ---- Memory. The host asks for few large blocks and divides them itself, so this can be simple. ----

static ep_status memory_allocate(ep_device* device, uint32_t pool, uint64_t size, ep_memory** out, ep_error** error) {
  if (pool != 0)
    return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT, "There is only pool 0; there is no pool %u.", pool);
  ep_memory* memory = make(device->host, sizeof *memory, error);
  if (!memory) return EP_STATUS_OUT_OF_HOST_MEMORY;
  memory->bytes = size > PTRDIFF_MAX - 64 ? NULL : aligned_alloc(64, (size + 63) / 64 * 64);
  if (!memory->bytes) {
    device->host->release(device->host, memory, sizeof *memory);
    return fail(device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "The system has no block of %llu bytes.",
                (unsigned long long)size);
  }
  *out = memory;
  return EP_STATUS_OK;
}

static void memory_free(ep_device* device, ep_memory* memory) {
  if (memory) free(memory->bytes);
  device->host->release(device->host, memory, sizeof *memory);  // NULL is allowed
}

// Our memory has a host address, which saves the host copies when it computes an op for us.
static ep_status memory_map(ep_device* device, ep_memory* memory, void** out_pointer, ep_error** error) {
  return (void)device, (void)error, *out_pointer = memory->bytes, EP_STATUS_OK;
}

static void* at(ep_buffer buffer) { return buffer.memory->bytes + buffer.offset; }

// ---- The stream and its transfers. A device with a real queue would enqueue here, and would have events. ----
// The only stream of a synchronous device has no state, so any thread may launch on it.
static ep_status stream_create(ep_device* device, const ep_stream_desc* desc, ep_stream** out_stream,
                               ep_error** error) {
  return (void)desc, (void)error, *out_stream = (ep_stream*)device, EP_STATUS_OK;
}

static void stream_destroy(ep_device* device, ep_stream* stream) { (void)device, (void)stream; }

static ep_status stream_synchronize(ep_stream* stream, ep_error** error) {
  return (void)stream, (void)error, EP_STATUS_OK;
}

static ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error** error) {
  return (void)stream, (void)error, memcpy(at(dst), at(src), size), EP_STATUS_OK;
}

static ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error** error) {
  return (void)stream, (void)error, memcpy(at(dst), src, size), EP_STATUS_OK;
}

static ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error** error) {
  return (void)stream, (void)error, memcpy(dst, at(src), size), EP_STATUS_OK;
}

// ---- Primitives. Support refuses every primitive that this provider does not compute, with a reason that execution
// reports show. The host passes dense tensors of any shape as rank 1. To compute more, add a support and a run
// function, and a line in `find`. ----

// Checks for every kind: `count` operands (DST, SRC, SRC_B, BIAS in this order), all f32 in memory, and nothing
// unknown. A part that a later version adds (an extension, a flag, a role) may change the meaning, so we must refuse
// it.
static ep_status check_common(const ep_host* host, const ep_primitive_desc* desc, uint32_t count, ep_error** error) {
  const ep_status no = EP_STATUS_UNSUPPORTED;
  const char* kind = ep_primitive_name(desc->kind);
  if (desc->epilogue_count != 0)
    return fail(host, error, no, "sample has no %s with an epilogue (%s).", kind, ep_epilogue_name(desc->epilogues));
  if (desc->extensions[0] != 0 || desc->baked_scalars != 0 || (desc->flags & ~EP_PRIMITIVE_FLAG_DETERMINISTIC) != 0 ||
      (desc->accumulate_dtype != 0 && desc->accumulate_dtype != EP_DTYPE_f32) || desc->precision > EP_PRECISION_RELAXED)
    return fail(host, error, no,
                "sample has no %s with extension 0x%x, baked scalars 0x%x, flags 0x%llx, sums in %s, precision %d.",
                kind, (unsigned)desc->extensions[0], desc->baked_scalars, (unsigned long long)desc->flags,
                desc->accumulate_dtype ? ep_dtype_name(desc->accumulate_dtype) : "f32", desc->precision);
  static const int32_t roles[] = {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B, EP_ROLE_BIAS};
  if (desc->operand_count != count)
    return fail(host, error, no, "sample takes %u operands for %s, not %u.", count, kind, desc->operand_count);
  for (uint32_t i = 0; i < count; i++) {
    const ep_operand_desc* operand = &desc->operands[i];
    if (operand->role != roles[i])
      return fail(host, error, no, "operand %u has role %d, where sample takes %d.", i, operand->role, roles[i]);
    if (operand->dtype != EP_DTYPE_f32)
      return fail(host, error, no, "sample computes f32; operand %u is %s.", i, ep_dtype_name(operand->dtype));
    if ((operand->flags & ~EP_OPERAND_FLAG_CONSTANT) != 0)
      return fail(host, error, no, "sample reads memory; operand %u has flags 0x%x.", i, (unsigned)operand->flags);
  }
  return EP_STATUS_OK;
}

// Returns dims and strides (in elements) of an operand. The launch gives those that the descriptor leaves open.
static ep_shape shape(const ep_primitive* primitive, const ep_launch* launch, uint32_t i) {
  const ep_operand_desc* given = &primitive->desc.operands[i];
  return launch->shapes ? launch->shapes[i] : (ep_shape){given->dims, given->strides, given->rank, 0};
}

// With these flags one primitive serves all lengths and strides, and each launch gives them. Without the flags every
// shape has its own primitive, and the descriptor gives dims and strides.
static ep_status row_support(const ep_host* host, const ep_primitive_desc* desc, uint32_t operands,
                             ep_support_info* terms, ep_error** error) {
  if (desc->operands[0].rank != 1)
    return fail(host, error, EP_STATUS_UNSUPPORTED, "sample loops over one dim, not %d.", desc->operands[0].rank);
  terms->implementation = text("plain");
  terms->flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return check_common(host, desc, operands, error);
}

// NaN stays NaN, as scalar_ops.def requires (ep_max is NaN if either argument is).
static void relu_run(const ep_primitive* primitive, const ep_launch* launch) {
  const ep_shape to = shape(primitive, launch, 0), from = shape(primitive, launch, 1);
  float *dst = at(launch->operands[0]), *x = at(launch->operands[1]);
  for (int64_t i = 0; i < to.dims[0]; i++, x += from.strides[0]) dst[i * to.strides[0]] = *x < 0 ? 0 : *x;
}

static void add_run(const ep_primitive* primitive, const ep_launch* launch) {
  const ep_shape to = shape(primitive, launch, 0), a = shape(primitive, launch, 1), b = shape(primitive, launch, 2);
  float *dst = at(launch->operands[0]), *x = at(launch->operands[1]), *y = at(launch->operands[2]);
  for (int64_t i = 0; i < to.dims[0]; i++, x += a.strides[0], y += b.strides[0]) dst[i * to.strides[0]] = *x + *y;
}

// Returns the function that computes `desc`, or NULL and a reason in `error`.
static run_function* find(const ep_host* host, const ep_primitive_desc* desc, ep_support_info* terms,
                          ep_error** error) {
  const int32_t unary = desc->kind == EP_PRIMITIVE_unary ? desc->attributes.unary.op : 0;
  const int32_t binary = desc->kind == EP_PRIMITIVE_binary ? desc->attributes.binary.op : 0;
  if (unary == EP_UNARY_relu) return row_support(host, desc, 2, terms, error) == EP_STATUS_OK ? relu_run : NULL;
  if (binary == EP_BINARY_add) return row_support(host, desc, 3, terms, error) == EP_STATUS_OK ? add_run : NULL;
  const char* name = unary ? ep_unary_name(unary) : binary ? ep_binary_name(binary) : ep_primitive_name(desc->kind);
  return fail(host, error, EP_STATUS_UNSUPPORTED, "sample has relu and add, not %s.", name), NULL;
}

static ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out_info,
                                   ep_error** error) {
  ep_support_info terms = {.struct_type = EP_STRUCT_SUPPORT_INFO};
  if (!find(device->host, desc, &terms, error)) return EP_STATUS_UNSUPPORTED;
  hand_out(out_info, &terms, sizeof terms);
  return EP_STATUS_OK;
}

static ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out_primitive,
                                  ep_primitive_info* out_info, ep_error** error) {
  ep_support_info terms = {0};
  run_function* run = find(device->host, desc, &terms, error);
  if (!run) return EP_STATUS_UNSUPPORTED;
  ep_primitive* primitive = make(device->host, sizeof *primitive, error);
  if (!primitive) return EP_STATUS_OUT_OF_HOST_MEMORY;
  primitive->desc = *desc;
  primitive->run = run;
  ep_primitive_info info = {.struct_type = EP_STRUCT_PRIMITIVE_INFO, .host_bytes = sizeof *primitive};
  info.implementation = terms.implementation;
  hand_out(out_info, &info, sizeof info);
  *out_primitive = primitive;
  return EP_STATUS_OK;
}

static void primitive_destroy(ep_device* device, ep_primitive* primitive) {
  if (primitive) device->host->release(device->host, primitive, sizeof *primitive);
}

// The caller's thread may flush denormals to zero or round differently. We compute in the default state (rule C02).
static ep_status primitive_launch(ep_primitive* primitive, ep_stream* stream, const ep_launch* launch,
                                  ep_fault* out_fault, ep_error** error) {
  fenv_t callers;
  fegetenv(&callers);
  fesetenv(FE_DFL_ENV);
  primitive->run(primitive, launch);
  fesetenv(&callers);
  return (void)stream, (void)out_fault, (void)error, EP_STATUS_OK;
}

#ifdef SAMPLE_MODULES
#include "sample_modules.h"  // kernels that the host passes as text
#endif

// ---- The device, the plug-in, and the only exported symbol. ----

static ep_status device_count(ep_plugin* plugin, uint32_t* out_count, ep_error** error) {
  return (void)plugin, (void)error, *out_count = 1, EP_STATUS_OK;
}

static ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out_info, ep_error** error) {
  if (index != 0) return fail(plugin->host, error, EP_STATUS_NOT_FOUND, "There is no device %u, only device 0.", index);
  ep_device_info info = {.struct_type = EP_STRUCT_DEVICE_INFO};
  info.name = text("Sample device in host memory");
  info.fingerprint = text("sample-1");
  info.device_class = EP_DEVICE_CLASS_SOFTWARE;  // listed, but used only on request
  info.flags = EP_DEVICE_FLAG_SYNCHRONOUS;
  for (int32_t dtype = EP_DTYPE_bool; dtype <= EP_DTYPE_u4; dtype++) info.dtypes |= UINT64_C(1) << dtype;
  for (int i = 0; i < 4; i++) info.pci[i] = -1;
  info.pool_count = 1;
  info.pools[0].flags = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT | EP_POOL_FLAG_HOST_CACHED;
  info.pools[0].minimum_alignment = 64;
  hand_out(out_info, &info, sizeof info);
  return EP_STATUS_OK;
}

static void device_close(ep_device* device) {
  if (device) device->host->release(device->host, device, sizeof *device);
}

static ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out_ops,
                             ep_error** error) {
  if (index != 0) return fail(plugin->host, error, EP_STATUS_NOT_FOUND, "There is no device %u, only device 0.", index);
  ep_device* device = make(plugin->host, sizeof *device, error);
  if (!device) return EP_STATUS_OUT_OF_HOST_MEMORY;
  device->host = plugin->host;
  // Slots that are not set are NULL, and the host works without them.
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
#ifdef SAMPLE_MODULES
  fill_modules(&ops);
#endif
  hand_out(out_ops, &ops, sizeof ops);
  *out_device = device;
  return EP_STATUS_OK;
}

static void plugin_shutdown(ep_plugin* plugin) {
  if (plugin) plugin->host->release(plugin->host, plugin, sizeof *plugin);
}

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  if (host->abi_major != EP_ABI_MAJOR || !EP_ABI_MINORS_AGREE(host->abi_minor, EP_ABI_MINOR))
    return fail(host, error, EP_STATUS_VERSION, "sample speaks ABI %d.%d, the host %u.%u.", EP_ABI_MAJOR, EP_ABI_MINOR,
                host->abi_major, host->abi_minor);
  ep_plugin* plugin = make(host, sizeof *plugin, error);
  if (!plugin) return EP_STATUS_OUT_OF_HOST_MEMORY;
  plugin->host = host;
  ep_plugin_ops ops = {.struct_type = EP_STRUCT_PLUGIN_OPS, .abi_major = EP_ABI_MAJOR, .abi_minor = EP_ABI_MINOR};
  ops.plugin = plugin;
  ops.shutdown = plugin_shutdown;
  ops.device_count = device_count;
  ops.device_info = device_info;
  ops.device_open = device_open;
  hand_out(out_ops, &ops, sizeof ops);
  return EP_STATUS_OK;
}
