// Imports: memory by file descriptor, by host address and by VkBuffer, and semaphores, from other APIs and other
// VkDevices.
#include <unistd.h>

#include "providers/vulkan/device.h"
#include "providers/vulkan/queue/external.h"

namespace tenon::provider::vulkan {
namespace {

ImportTerms terms_of(const ep_device* device, const char* what, uint64_t taken) {
  const PhysicalDevice& physical = *device->context->physical;
  return {physical.name.c_str(), what, taken, physical.facts.uuid, EP_IMPORT_FLAG_DEDICATED};
}

ep_status memory_import(ep_device* device, const ep_import_desc* desc, ep_memory** out_memory, ep_error** error) {
  Context& context = *device->context;
  if (const ep_status status = context.check(error); status != EP_STATUS_OK) return status;
  const ImportTerms terms = terms_of(device, "memory", memory_handles(context));
  if (const ep_status status = check_memory_import(device->host, *desc, terms, error); status != EP_STATUS_OK) {
    return status;
  }
  ep_memory* memory = make<ep_memory>(device->host, device->host, Block{});
  ep_status status = EP_STATUS_OK;
  if (desc->handle_type == EP_HANDLE_VK_BUFFER) {
    status = borrow_buffer(context, object_of<VkBuffer_T>(desc->handle), desc->size, &memory->block, error);
  } else {
    ExternalMemory external;
    if (desc->handle_type == EP_HANDLE_DMA_BUF) external.type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
    external.fd = descriptor_of(desc->handle);
    external.size = desc->size;
    external.dedicated = (desc->flags & EP_IMPORT_FLAG_DEDICATED) != 0;
    status = import_block(context, external, &memory->block, error);
  }
  if (status == EP_STATUS_OK) {
    *out_memory = memory;
  } else {
    destroy(memory);
  }
  return status;
}

ep_status memory_import_host(ep_device* device, void* pointer, uint64_t size, ep_memory** out_memory,
                             ep_error** error) {
  Context& context = *device->context;
  if (const ep_status status = context.check(error); status != EP_STATUS_OK) return status;
  const uint64_t page = context.physical->facts.host_page;
  if (page == 0 || context.api.vkGetMemoryHostPointerPropertiesEXT == nullptr) {
    return fail(device->host, error, EP_STATUS_UNSUPPORTED, "%s has no VK_EXT_external_memory_host.",
                context.physical->name.c_str());
  }
  if (reinterpret_cast<uintptr_t>(pointer) % page != 0 || size % page != 0) {
    return fail(device->host, error, EP_STATUS_UNSUPPORTED,
                "%s imports host memory in whole pages of %llu bytes; the %llu bytes at %p do not fit that.",
                context.physical->name.c_str(), static_cast<unsigned long long>(page),
                static_cast<unsigned long long>(size), pointer);
  }
  ExternalMemory external;
  external.type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  external.pointer = pointer;
  external.size = size;
  ep_memory* memory = make<ep_memory>(device->host, device->host, Block{});
  const ep_status status = import_block(context, external, &memory->block, error);
  if (status == EP_STATUS_OK) {
    *out_memory = memory;
  } else {
    destroy(memory);
  }
  return status;
}

// Makes a semaphore that shares the payload of the file descriptor.
VkResult import_semaphore(const Context& context, const ep_import_desc& desc, VkSemaphore* out_semaphore,
                          const char** out_call) {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  const bool counts = desc.semaphore == EP_SEMAPHORE_TIMELINE;
  type.semaphoreType = counts ? VK_SEMAPHORE_TYPE_TIMELINE : VK_SEMAPHORE_TYPE_BINARY;
  VkSemaphoreCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  *out_call = "vkCreateSemaphore";
  VkSemaphore semaphore = VK_NULL_HANDLE;
  VkResult result = context.api.vkCreateSemaphore(context.device, &info, nullptr, &semaphore);
  if (result != VK_SUCCESS) return result;
  VkImportSemaphoreFdInfoKHR import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR;
  import.semaphore = semaphore;
  import.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  import.fd = dup(descriptor_of(desc.handle));
  *out_call = "vkImportSemaphoreFdKHR";
  result = import.fd == -1 ? VK_ERROR_TOO_MANY_OBJECTS : context.api.vkImportSemaphoreFdKHR(context.device, &import);
  if (result == VK_SUCCESS) {
    *out_semaphore = semaphore;
    return result;
  }
  if (import.fd != -1) close(import.fd);
  context.api.vkDestroySemaphore(context.device, semaphore, nullptr);
  return result;
}

ep_status semaphore_import(ep_device* device, const ep_import_desc* desc, ep_semaphore** out_semaphore,
                           ep_error** error) {
  Context& context = *device->context;
  if (const ep_status status = context.check(error); status != EP_STATUS_OK) return status;
  const ImportTerms terms = terms_of(device, "semaphore", semaphore_handles(context));
  constexpr uint32_t kinds = 1 << EP_SEMAPHORE_BINARY | 1 << EP_SEMAPHORE_TIMELINE;
  if (const ep_status status = check_semaphore_import(device->host, *desc, terms, kinds, error);
      status != EP_STATUS_OK) {
    return status;
  }
  ep_semaphore* semaphore = make<ep_semaphore>(device->host, device->host);
  semaphore->owned = desc->handle_type == EP_HANDLE_OPAQUE_FD;
  const char* call = nullptr;
  VkResult result = VK_SUCCESS;
  if (semaphore->owned) {
    result = import_semaphore(context, *desc, &semaphore->handle, &call);
  } else {
    semaphore->handle = object_of<VkSemaphore_T>(desc->handle);
  }
  if (result == VK_SUCCESS) {
    *out_semaphore = semaphore;
    return EP_STATUS_OK;
  }
  destroy(semaphore);
  if (result != VK_ERROR_INVALID_EXTERNAL_HANDLE) return context.failed(error, call, result);
  return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT,
              "The driver of %s does not accept the file descriptor as a semaphore.", context.physical->name.c_str());
}

void semaphore_destroy(ep_device* device, ep_semaphore* semaphore) noexcept {
  if (semaphore == nullptr) return;
  const Context& context = *device->context;
  if (semaphore->owned) context.api.vkDestroySemaphore(context.device, semaphore->handle, nullptr);
  destroy(semaphore);
}

ep_status stream_wait_semaphore(ep_stream* stream, ep_semaphore* semaphore, uint64_t value, ep_error** error) {
  if (stream->commands->records()) return EP_STATUS_BUSY;
  return stream->commands->wait_semaphore(semaphore->handle, value, error);
}

ep_status stream_signal_semaphore(ep_stream* stream, ep_semaphore* semaphore, uint64_t value, ep_error** error) {
  if (stream->commands->records()) return EP_STATUS_BUSY;
  return stream->commands->signal_semaphore(semaphore->handle, value, error);
}

}  // namespace

uint64_t memory_handles(const Context& context) {
  uint64_t taken = memory_handles(context.physical->facts);
  // The application's VkDevice may lack extensions that the physical device has.
  if (context.api.vkGetMemoryFdPropertiesKHR == nullptr) {
    taken &= ~(handle_bit(EP_HANDLE_OPAQUE_FD) | handle_bit(EP_HANDLE_DMA_BUF));
  }
  return taken;
}

uint64_t semaphore_handles(const Context& context) {
  const bool by_fd = context.api.vkImportSemaphoreFdKHR != nullptr;
  return semaphore_handles(context.physical->facts) & (by_fd ? ~UINT64_C(0) : ~handle_bit(EP_HANDLE_OPAQUE_FD));
}

void fill_interop(ep_device_ops* ops) {
  ops->memory_import = entry<memory_import>;
  ops->memory_import_host = entry<memory_import_host>;
  ops->semaphore_import = entry<semaphore_import>;
  ops->semaphore_destroy = semaphore_destroy;
  ops->stream_wait_semaphore = entry<stream_wait_semaphore>;
  ops->stream_signal_semaphore = entry<stream_signal_semaphore>;
}

}  // namespace tenon::provider::vulkan
