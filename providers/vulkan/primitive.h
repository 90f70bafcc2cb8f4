// The base of every primitive of this provider, and how one is made.
#pragma once

#include <new>
#include <utility>

#include "providers/vulkan/device.h"
#include "sdk/provider/implementation.h"

// One created primitive. Launches may run on several threads at once: launch() changes nothing in it.
struct ep_primitive {
  const ep_host* host = nullptr;
  ep_device* device = nullptr;
  uint64_t size = 0;  // of the whole object

  ep_primitive() = default;
  virtual ~ep_primitive() = default;
  ep_primitive(const ep_primitive&) = delete;
  ep_primitive& operator=(const ep_primitive&) = delete;

  virtual ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const = 0;
  // Bytes of workspace a launch of these shapes needs; `shapes` is NULL where the descriptor is static.
  virtual uint64_t workspace(const ep_shape* shapes) const;
  // False: no launch needs any, whatever its shape.
  virtual bool has_workspace() const { return false; }
};

namespace tenon::provider::vulkan {

// A primitive of class T in memory of the host. Throws std::bad_alloc.
template <class T, class... Args>
T* make_primitive(ep_device& device, Args&&... args) {
  void* place = device.host->allocate(device.host, sizeof(T), alignof(T));
  if (place == nullptr) throw std::bad_alloc();
  try {
    T* primitive = new (place) T(std::forward<Args>(args)...);
    primitive->host = device.host;
    primitive->device = &device;
    primitive->size = sizeof(T);
    return primitive;
  } catch (...) {
    device.host->release(device.host, place, sizeof(T));
    throw;
  }
}

// The pipeline, or a refusal that says that the driver does not compile it.
Refusal compile(ep_device& device, const std::string& module, const Constants& constants,
                std::shared_ptr<Pipeline>* out_pipeline);

}  // namespace tenon::provider::vulkan
