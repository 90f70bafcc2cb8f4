// Stream: one of several independent sequences of work on an asynchronous device. A synchronous device has one stream,
// and these functions change nothing there. Tensors may cross streams freely: the VM waits where data depends on data.
#pragma once

#include <cstdint>

#include "core/device/export.h"
#include "core/tensor/device.h"

namespace tenon {

class TENON_API Stream {
 public:
  // Makes a further stream of `device`, which lives as long as the device. `priority` is a hint to the device: 0 is
  // normal, above 0 more urgent, below 0 less. Errors: those of the provider.
  explicit Stream(Device device, int32_t priority = 0);
  // The stream to which ops of the calling thread on `device` go.
  static Stream current(Device device);
  // The stream to which these ops go outside of any StreamScope.
  static Stream standard(Device device);

  // Work submitted later to this stream waits for all work submitted to `other`, a stream of this device or another.
  // The caller does not wait. Ops whose tensors depend on each other need no such call.
  void wait_stream(const Stream& other) const;

  Device device() const { return device_; }
  uint16_t index() const { return index_; }

 private:
  Stream(uint16_t index, Device device) : device_(device), index_(index) {}

  Device device_;
  uint16_t index_ = 0;
};

// While it lives, ops of the calling thread on the stream's device go to that stream.
class TENON_API StreamScope {
 public:
  explicit StreamScope(const Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Device device_;
  uint16_t previous_;
};

}  // namespace tenon
