// Stream: one of several independent sequences of work on an asynchronous device. A synchronous device has one stream,
// and these functions change nothing there. Tensors may cross streams freely: the VM waits where data depends on data.
#pragma once

#include <cstdint>

#include "core/device/export.h"
#include "core/tensor/device.h"
#include "core/tensor/tensor.h"

namespace tenon {

class Semaphore;
struct NativeHandle;

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

  // --- other APIs (core/tensor/native.h) ---

  // A stream over a queue of the application (cl_queue, cuda_stream), which lives as long as the device: ops of the
  // stream go to that queue, in the order of their calls, behind what the application submitted to it before the call.
  // For what the application submits after it, see flush(). A device has at most 64 streams, so keep it. Errors:
  // invalid_argument (a queue of another context, or not in order), unsupported (a type that the device does not take).
  static Stream over(Device device, const NativeHandle& handle);
  // Returns when all ops of this stream called so far have been handed to the device's queue; does not wait for them.
  // Work that the application then submits to the queue comes after them.
  void flush() const;
  // Ops of any stream called from now on that use `tensors` come after what this stream does up to here, work of the
  // application on an imported queue included. What another API wrote into them counts: an error that they held is
  // forgotten. The tensors are of this device.
  void acquire(const TensorList& tensors) const;
  // What this stream does from here on, and what the application submits to its queue after flush(), comes after all
  // ops called so far that use `tensors`. Errors of these ops are told to whoever reads the tensors.
  void release(const TensorList& tensors) const;
  // Ops of this stream called from now on wait, on the device, for `semaphore`: until it has reached `value` (timeline;
  // 0 for the other kinds). Then `tensors` are acquired. If the signal never comes, the stream never goes on; streams
  // that share its hardware queue may stand still too. With TENON_VM=sync the next op waits for the signal on its
  // caller. If the device refuses, reading `tensors` gives the error.
  void wait(const Semaphore& semaphore, uint64_t value = 0, const TensorList& tensors = {}) const;
  // Releases `tensors`; then signals `semaphore` after all ops of this stream called so far, whether they fail or not.
  // `value`: greater than all before it (timeline), else 0. The signal comes without flush(). Errors: invalid_argument
  // (a semaphore of another device, of kind event, a value of 0 for a timeline). What the device refuses later is an
  // error of synchronize().
  void signal(const Semaphore& semaphore, uint64_t value = 0, const TensorList& tensors = {}) const;

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
