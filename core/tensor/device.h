// Device: a cheap handle to one open device. Devices open when first named and stay open until the process ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/device/export.h"
#include "core/device/stats.h"

namespace tenon {

struct DeviceState;  // core/device/device_state.h, inside the library

class TENON_API Device {
 public:
  // No device. Ops on tensors run where the tensors are; factories without a device use Device::current().
  Device() = default;
  explicit Device(DeviceState* state) : state_(state) {}
  // Opens "cpu", "cuda:1", "vulkan:uuid=...". Errors: not_found, naming what there is and why what could have
  // matched was refused.
  explicit Device(std::string_view spelling);
  explicit Device(const char* spelling) : Device(std::string_view(spelling)) {}

  // The default device: set_current, else TENON_DEVICE, the config file, the best device there is (in that order).
  static Device current();
  // For the calling thread; a default-made Device resets it.
  static void set_current(Device device);
  // The device of class CPU that is synchronous and mapped: where the host rung runs and host data lives.
  static Device host();

  explicit operator bool() const { return state_ != nullptr; }
  const std::string& spelling() const;  // "cuda:0"
  const std::string& name() const;      // "NVIDIA H200"
  bool synchronous() const;
  // Waits for all work of this device; throws the first error not reported yet.
  void synchronize() const;
  // What is submitted later to any stream of this device waits for all that was submitted to any of them; the caller
  // does not wait.
  void barrier() const;
  // Bytes handed out, cached and reserved, and the peak.
  memory::Stats memory_stats() const;
  // Waits for the device, then gives back to it every cached block.
  void trim() const;
  DeviceState* state() const { return state_; }

  friend bool operator==(Device a, Device b) { return a.state_ == b.state_; }

 private:
  DeviceState* state_ = nullptr;
};

// Waits for all work of all devices; throws, of the errors not reported yet, the one of the earliest call.
TENON_API void synchronize();

// Ends every device of a provider: waits for all work, destroys what was made, closes the devices and shuts the
// provider down. Its mapping stays; naming one of its devices again opens it anew (after device_lost, for instance).
// Tensors on its devices must be gone and no other thread may be inside a call on them; `Device` handles that were made
// before stay, and calls on them throw. Errors: busy, while tensors hold memory of it (then nothing has changed);
// not_found, if the provider is not loaded.
TENON_API void retire(std::string_view provider);

}  // namespace tenon
