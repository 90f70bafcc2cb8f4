// Imports: buffers, queues and events that the application made in the device's cl_context.
#include "providers/opencl/device.h"
#include "sdk/provider/import.h"

namespace tenon::provider::opencl {
namespace {

ImportTerms terms_of(const ep_device* device, const char* what, int32_t type) {
  const PhysicalDevice& physical = device->context->physical;
  return {physical.name.c_str(), what, handle_bit(type), physical.uuid};
}

// Errors: INVALID_ARGUMENT unless `theirs` is the device's context.
ep_status check_context(ep_device* device, cl_context theirs, const char* what, ep_error** error) {
  if (theirs == device->context->handle()) return EP_STATUS_OK;
  return fail_with_remedy(device->host, error, EP_STATUS_INVALID_ARGUMENT,
                          "Open the device in that context first: adopt_device in C++, device_adopt in the ABI.",
                          "The %s belongs to another cl_context than the device %s.", what,
                          device->context->physical.name.c_str());
}

// Properties of a buffer of the application.
struct BufferFacts {
  cl_context context = nullptr;
  cl_mem_object_type type = 0;
  cl_mem_flags flags = 0;
  size_t size = 0;
  size_t offset = 0;  // offset in the parent buffer
  void* host = nullptr;
};

cl_int read_facts(const Api& api, cl_mem buffer, BufferFacts* facts) {
  const auto read = [&](cl_mem_info name, auto* value) {
    return api.clGetMemObjectInfo(buffer, name, sizeof *value, value, nullptr);
  };
  cl_int result = read(CL_MEM_CONTEXT, &facts->context);
  if (result == CL_SUCCESS) result = read(CL_MEM_TYPE, &facts->type);
  if (result == CL_SUCCESS) result = read(CL_MEM_FLAGS, &facts->flags);
  if (result == CL_SUCCESS) result = read(CL_MEM_SIZE, &facts->size);
  if (result == CL_SUCCESS) result = read(CL_MEM_OFFSET, &facts->offset);
  if (result == CL_SUCCESS) result = read(CL_MEM_HOST_PTR, &facts->host);
  return result;
}

ep_status check_buffer(ep_device* device, const BufferFacts& facts, uint64_t size, ep_error** error) {
  const ep_host* host = device->host;
  if (const ep_status status = check_context(device, facts.context, "cl_mem", error); status != EP_STATUS_OK) {
    return status;
  }
  if (facts.type != CL_MEM_OBJECT_BUFFER) {
    return fail(host, error, EP_STATUS_UNSUPPORTED, "The cl_mem is an object of type 0x%x, not a buffer.", facts.type);
  }
  if (size > facts.size) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT,
                "An import of %llu bytes was requested, but the cl_mem has %zu bytes.",
                static_cast<unsigned long long>(size), facts.size);
  }
  if ((facts.flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY)) != 0) {
    return fail(host, error, EP_STATUS_UNSUPPORTED, "Kernels may only %s the cl_mem; both are needed.",
                (facts.flags & CL_MEM_READ_ONLY) != 0 ? "read" : "write");
  }
  const bool on_host = (facts.flags & CL_MEM_USE_HOST_PTR) != 0;
  const uint64_t past = (on_host ? reinterpret_cast<uintptr_t>(facts.host) : facts.offset) % operand_alignment;
  if (past == 0) return EP_STATUS_OK;
  return fail(host, error, EP_STATUS_UNSUPPORTED, "The cl_mem begins %llu bytes past a multiple of %llu.",
              static_cast<unsigned long long>(past), static_cast<unsigned long long>(operand_alignment));
}

ep_status memory_import(ep_device* device, const ep_import_desc* desc, ep_memory** out_memory, ep_error** error) {
  Context& context = *device->context;
  if (const ep_status status = context.check(error); status != EP_STATUS_OK) return status;
  const ImportTerms terms = terms_of(device, "memory", EP_HANDLE_CL_MEM);
  if (const ep_status status = check_memory_import(device->host, *desc, terms, error); status != EP_STATUS_OK) {
    return status;
  }
  const cl_mem buffer = object_of<_cl_mem>(desc->handle);
  BufferFacts facts;
  cl_int result = read_facts(context.api, buffer, &facts);
  if (result == CL_INVALID_MEM_OBJECT) {
    return fail_text(device->host, error, EP_STATUS_INVALID_ARGUMENT, "The given cl_mem is not a memory object.");
  }
  if (result != CL_SUCCESS) return context.failed(error, "clGetMemObjectInfo", result);
  if (const ep_status status = check_buffer(device, facts, desc->size, error); status != EP_STATUS_OK) return status;
  ep_memory* memory = make<ep_memory>(device->host, device->host);
  result = context.api.clRetainMemObject(buffer);
  if (result != CL_SUCCESS) {
    destroy(memory);
    return context.failed(error, "clRetainMemObject", result);
  }
  memory->buffer = buffer;
  *out_memory = memory;
  return EP_STATUS_OK;
}

ep_status check_queue(ep_device* device, cl_command_queue queue, ep_error** error) {
  Context& context = *device->context;
  cl_context theirs = nullptr;
  cl_device_id worker = nullptr;
  cl_command_queue_properties properties = 0;
  const auto read = [&](cl_command_queue_info name, auto* value) {
    return context.api.clGetCommandQueueInfo(queue, name, sizeof *value, value, nullptr);
  };
  cl_int result = read(CL_QUEUE_CONTEXT, &theirs);
  if (result == CL_SUCCESS) result = read(CL_QUEUE_DEVICE, &worker);
  if (result == CL_SUCCESS) result = read(CL_QUEUE_PROPERTIES, &properties);
  if (result == CL_INVALID_COMMAND_QUEUE) {
    return fail_text(device->host, error, EP_STATUS_INVALID_ARGUMENT, "The given cl_command_queue is not valid.");
  }
  if (result != CL_SUCCESS) return context.failed(error, "clGetCommandQueueInfo", result);
  const ep_status status = check_context(device, theirs, "cl_command_queue", error);
  if (status != EP_STATUS_OK) return status;
  if (worker != context.physical.handle) {
    return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT, "The cl_command_queue is of another device than %s.",
                context.physical.name.c_str());
  }
  if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0) return EP_STATUS_OK;
  return fail_text(device->host, error, EP_STATUS_INVALID_ARGUMENT,
                   "The cl_command_queue runs its commands out of order; a stream needs an in-order queue.");
}

ep_status stream_import(ep_device* device, const ep_import_desc* desc, ep_stream** out_stream, ep_error** error) {
  if (const ep_status status = device->context->check(error); status != EP_STATUS_OK) return status;
  const ImportTerms terms = terms_of(device, "stream", EP_HANDLE_CL_QUEUE);
  if (const ep_status status = check_import(device->host, *desc, terms, error); status != EP_STATUS_OK) return status;
  const cl_command_queue handle = object_of<_cl_command_queue>(desc->handle);
  if (const ep_status status = check_queue(device, handle, error); status != EP_STATUS_OK) return status;
  auto queue = std::make_shared<CommandQueue>(device->context);
  if (const ep_status status = queue->share(handle, error); status != EP_STATUS_OK) return status;
  *out_stream = make<ep_stream>(device->host, device->host, std::move(queue));
  return EP_STATUS_OK;
}

ep_status semaphore_import(ep_device* device, const ep_import_desc* desc, ep_semaphore** out_semaphore,
                           ep_error** error) {
  Context& context = *device->context;
  if (const ep_status status = context.check(error); status != EP_STATUS_OK) return status;
  const ImportTerms terms = terms_of(device, "semaphore", EP_HANDLE_CL_EVENT);
  const ep_status checked = check_semaphore_import(device->host, *desc, terms, 1 << EP_SEMAPHORE_EVENT, error);
  if (checked != EP_STATUS_OK) return checked;
  const cl_event event = object_of<_cl_event>(desc->handle);
  cl_context theirs = nullptr;
  cl_int result = context.api.clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof theirs, &theirs, nullptr);
  if (result == CL_INVALID_EVENT) {
    return fail_text(device->host, error, EP_STATUS_INVALID_ARGUMENT, "The given cl_event is not valid.");
  }
  if (result != CL_SUCCESS) return context.failed(error, "clGetEventInfo", result);
  if (const ep_status status = check_context(device, theirs, "cl_event", error); status != EP_STATUS_OK) return status;
  ep_semaphore* semaphore = make<ep_semaphore>(device->host, device->host);
  result = context.api.clRetainEvent(event);
  if (result != CL_SUCCESS) {
    destroy(semaphore);
    return context.failed(error, "clRetainEvent", result);
  }
  semaphore->event = event;
  *out_semaphore = semaphore;
  return EP_STATUS_OK;
}

void semaphore_destroy(ep_device* device, ep_semaphore* semaphore) noexcept {
  if (semaphore == nullptr) return;
  device->context->api.clReleaseEvent(semaphore->event);
  destroy(semaphore);
}

ep_status stream_wait_semaphore(ep_stream* stream, ep_semaphore* semaphore, uint64_t, ep_error** error) {
  return stream->queue->wait_for_event(semaphore->event, error);
}

}  // namespace

void fill_interop(ep_device_ops* ops) {
  ops->memory_import = entry<memory_import>;
  ops->stream_import = entry<stream_import>;
  ops->semaphore_import = entry<semaphore_import>;
  ops->semaphore_destroy = semaphore_destroy;
  ops->stream_wait_semaphore = entry<stream_wait_semaphore>;
}

}  // namespace tenon::provider::opencl
