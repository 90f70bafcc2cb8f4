#include "core/tensor/stream.h"

#include "core/vm/vm.h"
#include "primitives/status/error.h"

namespace tenon {

Stream::Stream(Device device, int32_t priority)
    : device_(device), index_(value_or_throw(vm::create_stream(device.state(), priority))) {}

Stream Stream::current(Device device) { return Stream(vm::current_stream(device.state()), device); }
Stream Stream::standard(Device device) { return Stream(0, device); }

void Stream::wait_stream(const Stream& other) const {
  throw_if_error(vm::wait_stream(device_.state(), index_, other.device_.state(), other.index_));
}

StreamScope::StreamScope(const Stream& stream)
    : device_(stream.device()), previous_(vm::current_stream(stream.device().state())) {
  vm::set_current_stream(device_.state(), stream.index());
}

StreamScope::~StreamScope() { vm::set_current_stream(device_.state(), previous_); }

}  // namespace tenon
