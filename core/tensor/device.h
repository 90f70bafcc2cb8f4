// Device: a cheap handle to one open device. Devices open when first named and stay open until the process ends.
#pragma once

#include <cstddef>
#include <cstdint>
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
  // Opens "cpu", "cuda:1", "vulkan:uuid=...". Errors: not_found, with the devices there are and why each
  // candidate that could have matched was refused.
  explicit Device(std::string_view spelling);
  explicit Device(const char* spelling) : Device(std::string_view(spelling)) {}
  // The same where a device is expected: x.to("cuda:1").
  template <size_t N>
  Device(const char (&spelling)[N]) : Device(std::string_view(spelling)) {}

  // The default device: that of set_current, else of TENON_DEVICE, else of the config file, else the best device.
  static Device current();
  // Sets the default device of the calling thread. Device() resets it.
  static void set_current(Device device);
  // The host device: a synchronous device of class CPU whose memory the host can address. The host rung runs on it, and
  // host data lives on it.
  static Device host();

  explicit operator bool() const { return state_ != nullptr; }
  // "cuda:0"; "no device" for a handle that names none. Every other function below throws invalid_argument then.
  const std::string& spelling() const;
  const std::string& name() const;  // "NVIDIA H200"
  bool synchronous() const;
  // Waits for all work of this device, then throws the first error that was not reported yet.
  void synchronize() const;
  // Orders all streams of this device: work submitted later to any of them waits for all work submitted before. The
  // caller does not wait.
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

// How many threads the ops of the process may use, on devices that open after the call: before the first op. Never more
// than the process has CPUs. Errors: invalid_argument (count is below 1), busy (a device is open).
TENON_API void set_num_threads(int32_t count);
TENON_API int32_t get_num_threads();

// Waits for all work of all devices. Of the errors that were not reported yet, throws that of the earliest call.
TENON_API void synchronize();

// Ends every device of a provider: waits for all work, destroys kernels and streams, closes the devices and shuts the
// provider down. The library stays mapped, and naming one of the devices again opens it anew (after device_lost, for
// instance). All tensors on the devices must be dropped first, and no other thread may be inside a call on them.
// `Device` handles that were made before stay, and calls on them throw. Errors: busy, while tensors hold memory of the
// provider (then nothing has changed); not_found, if the provider is not loaded.
TENON_API void retire(std::string_view provider);

}  // namespace tenon
