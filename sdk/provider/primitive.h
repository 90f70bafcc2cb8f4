// The functions of the ABI that all providers with lists of implementations (implementation.h) share: support, create,
// destroy and workspace. A provider derives its handle from PrimitiveBase, adds its own launch(), and forwards its
// slots:
//
//   struct ep_primitive : tenon::provider::PrimitiveBase { virtual ep_status launch(...) = 0; };
//
//   ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out, ep_error**
//   error) {
//     return support(*device, "foo", implementation_lists(), *desc, out, error);
//   }
#pragma once

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "sdk/provider/implementation.h"

namespace tenon::provider {

// The members of every created primitive. A primitive lives in memory that the host gives and counts.
struct PrimitiveBase {
  const ep_host* host = nullptr;
  ep_device* device = nullptr;
  uint64_t size = 0;  // bytes of the whole object

  PrimitiveBase() = default;
  virtual ~PrimitiveBase() = default;
  PrimitiveBase(const PrimitiveBase&) = delete;
  PrimitiveBase& operator=(const PrimitiveBase&) = delete;

  // Returns the bytes of workspace that a launch with these shapes needs. `shapes` is NULL if the descriptor is static.
  virtual uint64_t workspace(const ep_shape* /*shapes*/) const { return 0; }
  // False if no launch needs workspace, for any shape.
  virtual bool has_workspace() const { return false; }
};

// Makes a primitive of class T, for the `make` of an Implementation. Throws std::bad_alloc.
template <class T, class Device, class... Args>
T* make_primitive(Device& device, Args&&... args) {
  void* memory = device.host->allocate(device.host, sizeof(T), alignof(T));
  if (memory == nullptr) throw std::bad_alloc();
  try {
    T* primitive = new (memory) T(std::forward<Args>(args)...);
    primitive->host = device.host;
    primitive->device = &device;
    primitive->size = sizeof(T);
    return primitive;
  } catch (...) {
    device.host->release(device.host, memory, sizeof(T));
    throw;
  }
}

// Destroys a primitive that make_primitive made, of any class. NULL is allowed.
template <class Primitive>
void destroy_primitive(Primitive* primitive) noexcept {
  if (primitive == nullptr) return;
  const ep_host* host = primitive->host;
  const uint64_t size = primitive->size;
  primitive->~Primitive();
  host->release(host, primitive, size);
}

// Returns the reason why `implementation` does not support `desc`. If it does, fills `info` with its name and
// requirements.
inline Refusal why_not(const Implementation& implementation, const ep_device& device, const ep_primitive_desc& desc,
                       ep_support_info& info) {
  if (Refusal refusal = unknown_parts(desc)) return refusal;
  if (!implementation.knows_quantisation) {
    if (Refusal refusal = quantised_operands(desc)) return refusal;
  }
  if (desc.baked_scalars != 0) {
    return Refusal::because("baked scalars 0x%x; all are launch values here", desc.baked_scalars);
  }
  info = {};
  info.implementation = to_ep_string(implementation.name);
  return implementation.why_not(device, desc, info);
}

// primitive_support: returns the requirements of the first implementation that supports `desc`. Errors: UNSUPPORTED
// with every refusal.
template <class Device>
ep_status support(const Device& device, const char* provider, std::span<const ImplementationList> lists,
                  const ep_primitive_desc& desc, ep_support_info* out_info, ep_error** error) {
  ep_support_info info{};
  const ep_status status = choose(device.host, provider, lists, desc, error, [&](const Implementation& candidate) {
    return why_not(candidate, device, desc, info);
  });
  if (status == EP_STATUS_OK) fill(out_info, info);
  return status;
}

// primitive_create: makes a primitive with the first implementation that supports `desc`, and fills its info.
template <class Device, class Primitive>
ep_status create(Device& device, const char* provider, std::span<const ImplementationList> lists,
                 const ep_primitive_desc& desc, Primitive** out_primitive, ep_primitive_info* out_info,
                 ep_error** error) {
  Primitive* primitive = nullptr;
  ep_primitive_info info{};
  const ep_status status = choose(device.host, provider, lists, desc, error, [&](const Implementation& candidate) {
    ep_support_info terms{};
    if (Refusal refusal = why_not(candidate, device, desc, terms)) return refusal;
    info = {};
    info.implementation = terms.implementation;
    if (wants_to_stop(device.host)) return Refusal::failure(EP_STATUS_CANCELLED, "the host asked to stop");
    return candidate.make(device, desc, &primitive, info);
  });
  if (status != EP_STATUS_OK) return status;
  if (!is_dynamic(desc)) info.workspace_bytes = primitive->workspace(nullptr);
  if (!primitive->has_workspace()) info.flags |= EP_PRIMITIVE_INFO_FLAG_NO_WORKSPACE;
  info.host_bytes = std::max(info.host_bytes, primitive->size);
  fill(out_info, info);
  *out_primitive = primitive;
  return EP_STATUS_OK;
}

}  // namespace tenon::provider
