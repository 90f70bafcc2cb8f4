// Imports: memory by address and by file descriptor, streams, semaphores and events of the application or another API.
#include <unistd.h>

#include "providers/cuda/device.h"
#include "sdk/provider/import.h"

namespace tenon::provider::cuda {
namespace {

ImportTerms terms_of(const ep_device* device, const char* what, uint64_t taken) {
  return {device->facts.name.c_str(), what, taken, reinterpret_cast<const uint8_t*>(device->facts.uuid.bytes),
          EP_IMPORT_FLAG_DEDICATED};
}

// --- memory ---

// Checks that [address, address + size) is memory of this device.
ep_status check_pointer(ep_device* device, CUdeviceptr address, uint64_t size, ep_error** error) {
  const Driver& driver = *device->driver;
  int ordinal = -1;
  CUdeviceptr start = 0;
  size_t bytes = 0;
  CUresult result = driver.pointer_get_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
  if (result == CUDA_SUCCESS) {
    result = driver.pointer_get_attribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
  }
  if (result == CUDA_SUCCESS) {
    result = driver.pointer_get_attribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address);
  }
  const auto at = static_cast<unsigned long long>(address);
  if (result == CUDA_ERROR_INVALID_VALUE) {
    return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT, "CUDA does not know the address 0x%llx.", at);
  }
  if (result != CUDA_SUCCESS) return driver_failed(device, result, "inspecting an address", error);
  if (ordinal != device->facts.number) {
    return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT, "0x%llx is memory of device %d, not of %s.", at,
                ordinal, device->facts.name.c_str());
  }
  if (const uint64_t left = start + bytes - address; size > left) {
    return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT,
                "An import of %llu bytes was requested, but only %llu bytes follow 0x%llx in its block.",
                static_cast<unsigned long long>(size), static_cast<unsigned long long>(left), at);
  }
  if (address % block_alignment == 0) return EP_STATUS_OK;
  return fail(device->host, error, EP_STATUS_UNSUPPORTED,
              "0x%llx is not a multiple of %llu; give the start of the block.", at,
              static_cast<unsigned long long>(block_alignment));
}

// Maps the memory behind a file descriptor. On success the driver owns a duplicate of the file descriptor.
CUresult map_descriptor(const Driver& driver, const ep_import_desc& desc, ep_memory* memory) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle{};
  handle.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  handle.handle.fd = dup(descriptor_of(desc.handle));
  handle.size = desc.size;
  handle.flags = (desc.flags & EP_IMPORT_FLAG_DEDICATED) != 0 ? CUDA_EXTERNAL_MEMORY_DEDICATED : 0;
  if (handle.handle.fd == -1) return CUDA_ERROR_OPERATING_SYSTEM;
  CUresult result = driver.import_external_memory(&memory->external, &handle);
  if (result != CUDA_SUCCESS) {
    memory->external = nullptr;
    close(handle.handle.fd);
    return result;
  }
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer{};
  buffer.size = desc.size;
  result = driver.external_memory_get_mapped_buffer(&memory->address, memory->external, &buffer);
  if (result != CUDA_SUCCESS) driver.destroy_external_memory(memory->external);
  return result;
}

ep_status import_descriptor(ep_device* device, const ep_import_desc& desc, ep_memory* memory, ep_error** error) {
  const CUresult result = map_descriptor(*device->driver, desc, memory);
  if (result == CUDA_SUCCESS) return EP_STATUS_OK;
  if (result != CUDA_ERROR_INVALID_VALUE && result != CUDA_ERROR_INVALID_HANDLE) {
    return driver_failed(device, result, "importing memory", error);
  }
  return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT,
              "The driver of %s does not accept the file descriptor %d as memory of %llu bytes.",
              device->facts.name.c_str(), descriptor_of(desc.handle), static_cast<unsigned long long>(desc.size));
}

ep_status memory_import(ep_device* device, const ep_import_desc* desc, ep_memory** out_memory, ep_error** error) {
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  const ImportTerms terms = terms_of(device, "memory", imported_memory);
  if (const ep_status status = check_memory_import(device->host, *desc, terms, error); status != EP_STATUS_OK) {
    return status;
  }
  ep_memory* memory = make<ep_memory>(device->host);
  memory->imported = true;
  const Current current(device);
  ep_status status = EP_STATUS_OK;
  if (current.result() != CUDA_SUCCESS) {
    status = driver_failed(device, current.result(), "importing memory", error);
  } else if (desc->handle_type == EP_HANDLE_CUDA_POINTER) {
    memory->address = desc->handle;
    status = check_pointer(device, memory->address, desc->size, error);
  } else {
    status = import_descriptor(device, *desc, memory, error);
  }
  if (status == EP_STATUS_OK) {
    *out_memory = memory;
  } else {
    destroy(memory);
  }
  return status;
}

// --- streams ---

ep_status stream_import(ep_device* device, const ep_import_desc* desc, ep_stream** out_stream, ep_error** error) {
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  const ImportTerms terms = terms_of(device, "stream", handle_bit(EP_HANDLE_CUDA_STREAM));
  if (const ep_status status = check_import(device->host, *desc, terms, error); status != EP_STATUS_OK) return status;
  const CUstream handle = object_of<CUstream_st>(desc->handle);
  CUcontext theirs = nullptr;
  const Current current(device);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) result = device->driver->stream_get_ctx(handle, &theirs);
  if (result != CUDA_SUCCESS) return driver_failed(device, result, "inspecting a stream", error);
  if (theirs != device->context) {
    return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT,
                "The CUstream belongs to another context than the primary one of %s.", device->facts.name.c_str());
  }
  *out_stream = make_stream(device, handle, true);
  return EP_STATUS_OK;
}

// --- semaphores ---

CUresult import_semaphore(const Driver& driver, const ep_import_desc& desc, CUexternalSemaphore* out_semaphore) {
  CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC handle{};
  handle.type = desc.semaphore == EP_SEMAPHORE_TIMELINE ? CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
                                                        : CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
  handle.handle.fd = dup(descriptor_of(desc.handle));
  if (handle.handle.fd == -1) return CUDA_ERROR_OPERATING_SYSTEM;
  const CUresult result = driver.import_external_semaphore(out_semaphore, &handle);
  if (result != CUDA_SUCCESS) close(handle.handle.fd);
  return result;
}

ep_status semaphore_import(ep_device* device, const ep_import_desc* desc, ep_semaphore** out_semaphore,
                           ep_error** error) {
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  const ImportTerms terms = terms_of(device, "semaphore", imported_semaphores);
  constexpr uint32_t counting = 1 << EP_SEMAPHORE_BINARY | 1 << EP_SEMAPHORE_TIMELINE;
  const uint32_t kinds = is_event(desc->handle_type) ? 1 << EP_SEMAPHORE_EVENT : counting;
  const ep_status checked = check_semaphore_import(device->host, *desc, terms, kinds, error);
  if (checked != EP_STATUS_OK) return checked;
  ep_semaphore* semaphore = make<ep_semaphore>(device->host);
  if (is_event(desc->handle_type)) {
    semaphore->event = object_of<CUevent_st>(desc->handle);
    *out_semaphore = semaphore;
    return EP_STATUS_OK;
  }
  const Current current(device);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) result = import_semaphore(*device->driver, *desc, &semaphore->external);
  if (result == CUDA_SUCCESS) {
    *out_semaphore = semaphore;
    return EP_STATUS_OK;
  }
  destroy(semaphore);
  if (result != CUDA_ERROR_INVALID_VALUE && result != CUDA_ERROR_INVALID_HANDLE) {
    return driver_failed(device, result, "importing a semaphore", error);
  }
  return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT,
              "The driver of %s does not accept the file descriptor %d as a semaphore.", device->facts.name.c_str(),
              descriptor_of(desc->handle));
}

void semaphore_destroy(ep_device* device, ep_semaphore* semaphore) noexcept {
  if (semaphore == nullptr) return;
  if (semaphore->external != nullptr) {
    const Current current(device);
    device->driver->destroy_external_semaphore(semaphore->external);
  }
  destroy(semaphore);
}

ep_status stream_wait_semaphore(ep_stream* stream, ep_semaphore* semaphore, uint64_t value, ep_error** error) {
  if (stream->records) return EP_STATUS_BUSY;
  ep_device* device = stream->device;
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  const Driver& driver = *device->driver;
  CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait{};
  wait.params.fence.value = value;
  const Current current(device);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS && semaphore->event != nullptr) {
    result = driver.stream_wait_event(stream->handle, semaphore->event, 0);
  } else if (result == CUDA_SUCCESS) {
    result = driver.wait_external_semaphores(&semaphore->external, &wait, 1, stream->handle);
  }
  return result == CUDA_SUCCESS ? EP_STATUS_OK : driver_failed(device, result, "waiting for a semaphore", error);
}

ep_status stream_signal_semaphore(ep_stream* stream, ep_semaphore* semaphore, uint64_t value, ep_error** error) {
  if (stream->records) return EP_STATUS_BUSY;
  ep_device* device = stream->device;
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  if (semaphore->event != nullptr) {
    return fail_text(device->host, error, EP_STATUS_UNSUPPORTED, "A CUevent can only be waited for, not signalled.");
  }
  CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal{};
  signal.params.fence.value = value;
  const Current current(device);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) {
    result = device->driver->signal_external_semaphores(&semaphore->external, &signal, 1, stream->handle);
  }
  return result == CUDA_SUCCESS ? EP_STATUS_OK : driver_failed(device, result, "signalling a semaphore", error);
}

}  // namespace

void fill_interop(ep_device_ops* ops) {
  ops->memory_import = entry<memory_import>;
  ops->stream_import = entry<stream_import>;
  ops->semaphore_import = entry<semaphore_import>;
  ops->semaphore_destroy = semaphore_destroy;
  ops->stream_wait_semaphore = entry<stream_wait_semaphore>;
  ops->stream_signal_semaphore = entry<stream_signal_semaphore>;
}

}  // namespace tenon::provider::cuda
