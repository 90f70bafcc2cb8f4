// Stream: one of several independent sequences of work on an asynchronous device. A synchronous device has one stream,
// and these functions do nothing there. Tensors may be used on any stream: the VM waits where data depends on data.
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
  // Makes a new stream of `device`, which lives as long as the device. `priority` is a hint to the device: 0 is normal,
  // above 0 more urgent, below 0 less. Errors: those of the provider.
  explicit Stream(Device device, int32_t priority = 0);
  // The stream that receives the calling thread's ops on `device`.
  static Stream current(Device device);
  // The stream that receives these ops outside any StreamScope.
  static Stream standard(Device device);

  // Work submitted later to this stream waits for all work submitted to `other`, a stream of this device or another.
  // The caller does not wait. Ops whose tensors depend on each other need no such call.
  void wait_stream(const Stream& other) const;

  // --- other APIs (core/tensor/native.h) ---

  // A stream over a queue of the application (cl_queue, cuda_stream), which lives as long as the device. Ops of the
  // stream are submitted to that queue, in the order of their calls, after everything that the application submitted
  // before the call. For work that the application submits later, see flush(). A device has at most 64 streams, so keep
  // the stream. Errors: invalid_argument (a queue of another context, or not in order), unsupported (a type that the
  // device does not take).
  static Stream over(Device device, const NativeHandle& handle);
  // Returns when all ops called on this stream so far have been submitted to the device's queue; does not wait for them
  // to finish. Work that the application then submits to the queue runs after them.
  void flush() const;
  // Ops of any stream called from now on that use `tensors` run after all work of this stream so far, including the
  // application's work on an imported queue. The elements that another API wrote are valid: an earlier error of the
  // tensors is cleared. The tensors must be on this device.
  void acquire(const TensorList& tensors) const;
  // Work of this stream from now on, including work that the application submits to its queue after flush(), runs after
  // all ops called so far that use `tensors`. Errors of these ops are reported to readers of the tensors.
  void release(const TensorList& tensors) const;
  // Ops of this stream called from now on wait on the device until `semaphore` has reached `value` (timeline; pass 0
  // for the other kinds). Then `tensors` are acquired. If the signal never comes, the stream stops forever; streams
  // that share its hardware queue may stop too. With TENON_VM=sync the next op waits for the signal on the caller's
  // thread. If the device refuses the wait, reading `tensors` reports the error.
  void wait(const Semaphore& semaphore, uint64_t value = 0, const TensorList& tensors = {}) const;
  // Releases `tensors`, then signals `semaphore` after all ops called on this stream so far, whether they fail or not.
  // `value` must be greater than all earlier ones (timeline), else 0. The signal does not need flush(). Errors:
  // invalid_argument (a semaphore of another device or of kind event, a value of 0 for a timeline). If the device
  // refuses the signal later, synchronize() reports the error.
  void signal(const Semaphore& semaphore, uint64_t value = 0, const TensorList& tensors = {}) const;

  Device device() const { return device_; }
  uint16_t index() const { return index_; }

 private:
  Stream(uint16_t index, Device device) : device_(device), index_(index) {}

  Device device_;
  uint16_t index_ = 0;
};

// While this object lives, ops of the calling thread on the stream's device use that stream.
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
