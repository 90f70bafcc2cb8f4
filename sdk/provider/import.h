// The checks at the beginning of every import, so that all providers refuse the same things with the same sentences:
// the type of the handle, flags, size, the kind of a semaphore, the UUID, and the handle itself. The provider checks
// properties that only the other API knows (context, size, order).
#pragma once

#include <algorithm>
#include <climits>
#include <string>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#endif

#include "ep_api/ep_names.h"
#include "sdk/provider/error.h"

namespace tenon::provider {

// The handles of one kind that a device accepts.
struct ImportTerms {
  const char* device;   // "vulkan:0" or its name
  const char* what;     // "memory", "stream", "semaphore", "context"
  uint64_t taken;       // bits 1 << EP_HANDLE_*
  const uint8_t* uuid;  // 16 bytes, as in ep_device_info
  uint64_t flags = 0;   // EP_IMPORT_FLAG_* that the device supports
};

inline constexpr uint64_t handle_bit(int32_t type) { return UINT64_C(1) << type; }
inline bool is_descriptor(int32_t type) { return type == EP_HANDLE_OPAQUE_FD || type == EP_HANDLE_DMA_BUF; }
inline bool is_event(int32_t type) { return type == EP_HANDLE_CUDA_EVENT || type == EP_HANDLE_CL_EVENT; }

// The file descriptor in `handle`; -1 if there is none.
inline int descriptor_of(uint64_t handle) {
  const auto number = static_cast<int64_t>(handle);
  return number < 0 || number > INT_MAX ? -1 : static_cast<int>(number);
}

template <class T>
T* object_of(uint64_t handle) {
  return reinterpret_cast<T*>(static_cast<uintptr_t>(handle));
}

// "opaque_fd and vk_buffer"; "none" for 0.
inline std::string handle_list(uint64_t taken) {
  std::string text;
  for (int32_t type = 0; type < 64; ++type) {
    if ((taken >> type & 1) == 0) continue;
    taken &= ~handle_bit(type);
    text += (text.empty() ? "" : taken == 0 ? " and " : ", ") + std::string(ep_handle_name(type));
  }
  return text.empty() ? "none" : text;
}

inline std::string uuid_text(const uint8_t* uuid) {
  char text[33];
  for (int i = 0; i < 16; ++i) std::snprintf(text + 2 * i, 3, "%02x", uuid[i]);
  return text;
}

// Returns UNSUPPORTED unless `terms` accepts the type.
inline ep_status check_handle_type(const ep_host* host, int32_t type, const ImportTerms& terms, ep_error** error) {
  if (type > 0 && type < 64 && (terms.taken & handle_bit(type)) != 0) return EP_STATUS_OK;
  return fail(host, error, EP_STATUS_UNSUPPORTED, "%s does not accept a %s of type %s (%d); it accepts %s.",
              terms.device, terms.what, ep_handle_name(type), type, handle_list(terms.taken).c_str());
}

// Returns INVALID_ARGUMENT for a handle that cannot be valid.
inline ep_status check_handle(const ep_host* host, int32_t type, uint64_t handle, const ImportTerms& terms,
                              ep_error** error) {
  if (!is_descriptor(type)) {
    if (handle != 0) return EP_STATUS_OK;
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "The %s of a %s for %s is NULL.", ep_handle_name(type),
                terms.what, terms.device);
  }
  const int descriptor = descriptor_of(handle);
  bool is_open = descriptor >= 0;
#if defined(__unix__) || defined(__APPLE__)
  is_open = is_open && fcntl(descriptor, F_GETFD) != -1;
#endif
  if (is_open) return EP_STATUS_OK;
  return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "%lld, the %s of a %s for %s, is not an open file descriptor.",
              static_cast<long long>(handle), ep_handle_name(type), terms.what, terms.device);
}

inline ep_status check_import(const ep_host* host, const ep_import_desc& desc, const ImportTerms& terms,
                              ep_error** error) {
  const ep_status known = check_handle_type(host, desc.handle_type, terms, error);
  if (known != EP_STATUS_OK) return known;
  if (const uint64_t unknown = desc.flags & ~terms.flags; unknown != 0) {
    return fail(host, error, EP_STATUS_UNSUPPORTED, "%s does not know the flags 0x%llx of an import.", terms.device,
                static_cast<unsigned long long>(unknown));
  }
  const uint8_t none[16] = {};
  if (!std::equal(none, none + 16, desc.uuid) && !std::equal(terms.uuid, terms.uuid + 16, desc.uuid)) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "The %s was made by the device with UUID %s; %s has UUID %s.",
                terms.what, uuid_text(desc.uuid).c_str(), terms.device, uuid_text(terms.uuid).c_str());
  }
  return check_handle(host, desc.handle_type, desc.handle, terms, error);
}

inline ep_status check_memory_import(const ep_host* host, const ep_import_desc& desc, const ImportTerms& terms,
                                     ep_error** error) {
  const ep_status status = check_import(host, desc, terms, error);
  if (status != EP_STATUS_OK || desc.size != 0) return status;
  return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "Memory of 0 bytes cannot be imported on %s.", terms.device);
}

// `kinds`: bits 1 << EP_SEMAPHORE_* that the device supports for the type.
inline ep_status check_semaphore_import(const ep_host* host, const ep_import_desc& desc, const ImportTerms& terms,
                                        uint32_t kinds, ep_error** error) {
  const ep_status status = check_import(host, desc, terms, error);
  if (status != EP_STATUS_OK) return status;
  const int32_t kind = desc.semaphore;
  if (kind > 0 && kind < 32 && (kinds >> kind & 1) != 0) return EP_STATUS_OK;
  return fail(host, error, EP_STATUS_UNSUPPORTED, "%s does not accept a semaphore of type %s as kind %d.", terms.device,
              ep_handle_name(desc.handle_type), kind);
}

}  // namespace tenon::provider
