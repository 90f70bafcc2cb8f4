#include "core/tensor/stream.h"

#include <algorithm>

#include "core/device/device_state.h"
#include "core/tensor/factory.h"
#include "core/tensor/native.h"
#include "core/vm/opaque.h"
#include "core/vm/vm.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

// The storages of `tensors`, without repeats. Errors: a tensor of another device, or one that is being recorded.
std::vector<Storage*> storages_of(std::string_view caller, const Stream& stream, const TensorList& tensors) {
  std::vector<Storage*> storages;
  for (const Tensor& tensor : tensors) {
    if (!(tensor.device() == stream.device())) {
      throw Error(Subject{caller}, Code::invalid_argument,
                  fmt::format("a tensor of {} is given to a stream of {}.", tensor.device().spelling(),
                              stream.device().spelling()));
    }
    if (tensor.impl()->storage == nullptr) refuse_recorded(fmt::format("{}: the tensor", caller), tensor);
    Storage* storage = value_or_throw(vm::expose(tensor.impl()->storage));  // another API reads its bytes
    if (std::find(storages.begin(), storages.end(), storage) == storages.end()) storages.push_back(storage);
  }
  return storages;
}

vm::SemaphoreValue checked(std::string_view caller, const Stream& stream, const Semaphore& semaphore, uint64_t value) {
  if (!semaphore) throw Error(Subject{caller}, Code::invalid_argument, "there is no semaphore.");
  const DeviceState* device = semaphore.state()->device;
  if (device != stream.device().state()) {
    throw Error(Subject{caller}, Code::invalid_argument,
                fmt::format("a semaphore of {} is given to a stream of {}.", device->opened->spelling,
                            stream.device().spelling()));
  }
  if (semaphore.kind() != SemaphoreKind::timeline && value != 0) {
    throw Error(Subject{caller}, Code::invalid_argument,
                fmt::format("the value is {}; only timeline semaphores have values.", value));
  }
  return {semaphore.state(), value};
}

// Errors: `value` is not greater than all earlier signalled values.
void raise_signalled(vm::ImportedSemaphore& semaphore, uint64_t value) {
  uint64_t before = semaphore.signalled.load();
  do {
    if (value > before) continue;
    throw Error(Code::invalid_argument,
                fmt::format("Stream::signal: the value is {}; it must be greater than {}, which was signalled before.",
                            value, before));
  } while (!semaphore.signalled.compare_exchange_weak(before, value));
}

}  // namespace

Stream::Stream(Device device, int32_t priority)
    : device_(device), index_(value_or_throw(vm::create_stream(device.state(), priority))) {}

Stream Stream::current(Device device) { return Stream(vm::current_stream(device.state()), device); }
Stream Stream::standard(Device device) { return Stream(0, device); }

void Stream::wait_stream(const Stream& other) const {
  throw_if_error(vm::wait_stream(device_.state(), index_, other.device_.state(), other.index_));
}

void Stream::flush() const { throw_if_error(vm::flush(device_.state(), index_)); }

void Stream::acquire(const TensorList& tensors) const {
  throw_if_error(vm::acquire(device_.state(), index_, storages_of("Stream::acquire", *this, tensors), {}));
}

void Stream::release(const TensorList& tensors) const {
  throw_if_error(vm::release(device_.state(), index_, storages_of("Stream::release", *this, tensors), {}));
}

void Stream::wait(const Semaphore& semaphore, uint64_t value, const TensorList& tensors) const {
  vm::SemaphoreValue until = checked("Stream::wait", *this, semaphore, value);
  throw_if_error(vm::acquire(device_.state(), index_, storages_of("Stream::wait", *this, tensors), std::move(until)));
}

void Stream::signal(const Semaphore& semaphore, uint64_t value, const TensorList& tensors) const {
  vm::SemaphoreValue then = checked("Stream::signal", *this, semaphore, value);
  if (semaphore.kind() == SemaphoreKind::event) {
    throw Error(Code::invalid_argument, "Stream::signal: an event of another API can only be waited for.");
  }
  if (device_.state()->ops.stream_signal_semaphore == nullptr) {
    throw Error(Code::unsupported, fmt::format("Stream::signal: {} cannot signal semaphores.", device_.spelling()));
  }
  const std::vector<Storage*> storages = storages_of("Stream::signal", *this, tensors);
  if (semaphore.kind() == SemaphoreKind::timeline) raise_signalled(*semaphore.state(), value);
  throw_if_error(vm::release(device_.state(), index_, storages, std::move(then)));
}

StreamScope::StreamScope(const Stream& stream)
    : device_(stream.device()), previous_(vm::current_stream(stream.device().state())) {
  vm::set_current_stream(device_.state(), stream.index());
}

StreamScope::~StreamScope() { vm::set_current_stream(device_.state(), previous_); }

}  // namespace tenon
