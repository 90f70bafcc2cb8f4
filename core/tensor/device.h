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

struct DeviceState;  // core/device/device_state.h, internal

class TENON_API Device {
 public:
  // No device. Ops on tensors run on the device of the tensors; factories without a device use Device::current().
  Device() = default;
  explicit Device(DeviceState* state) : state_(state) {}
  // Opens "cpu", "cuda:1", "vulkan:uuid=...". Errors: not_found, with a list of the available devices and, for each
  // candidate that could have matched, why it was refused.
  explicit Device(std::string_view spelling);
  explicit Device(const char* spelling) : Device(std::string_view(spelling)) {}
  // Converts a string literal to a Device: x.to("cuda:1").
  template <size_t N>
  Device(const char (&spelling)[N]) : Device(std::string_view(spelling)) {}

  // The default device. The first of these that is set decides: set_current, TENON_DEVICE, the config file, the best
  // device.
  static Device current();
  // Sets the default device of the calling thread. Device() resets it.
  static void set_current(Device device);
  // The host device: a synchronous device of class CPU whose memory the host can address. The host rung runs on it, and
  // host data lives on it.
  static Device host();

  explicit operator bool() const { return state_ != nullptr; }
  // "cuda:0"; "no device" for an empty handle. All functions below throw invalid_argument for an empty handle.
  const std::string& spelling() const;
  const std::string& name() const;  // "NVIDIA H200"
  bool synchronous() const;
  // Waits for all work of this device, then throws the first error that has not been reported yet.
  void synchronize() const;
  // Orders all streams of this device: work submitted later to any of them waits for all work submitted before. The
  // caller does not wait.
  void barrier() const;
  // The bytes handed out, cached and reserved, and the peak.
  memory::Stats memory_stats() const;
  // Waits for the device, then returns every cached block to it.
  void trim() const;
  DeviceState* state() const { return state_; }

  friend bool operator==(Device a, Device b) { return a.state_ == b.state_; }

 private:
  DeviceState* state_ = nullptr;
};

// Sets the most threads that the ops of the process may use, on devices that open after the call. Call it before the
// first op. The number never exceeds the CPUs of the process. Errors: invalid_argument (count is below 1), busy (a
// device is open).
TENON_API void set_num_threads(int32_t count);
TENON_API int32_t get_num_threads();

// Waits for all work of all devices, then throws the earliest error that has not been reported yet.
TENON_API void synchronize();

// Ends every device of a provider: waits for all work, destroys kernels and streams, closes the devices and shuts the
// provider down. The library stays mapped, and naming one of the devices opens it again (after device_lost, for
// instance). All tensors on the devices must be dropped first, and no other thread may be inside a call on them.
// `Device` handles that were made before stay, but calls on them throw. Errors: busy, while tensors hold memory of the
// provider (then nothing has changed); not_found, if the provider is not loaded.
TENON_API void retire(std::string_view provider);

}  // namespace tenon
