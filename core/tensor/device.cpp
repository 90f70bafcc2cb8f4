#include "core/tensor/device.h"

#include "core/device/device_state.h"
#include "core/tensor/opened_devices.h"
#include "core/vm/vm.h"
#include "primitives/status/error.h"

namespace tenon {
namespace {

thread_local DeviceState* current_device = nullptr;

}  // namespace

Device::Device(std::string_view spelling) : state_(value_or_throw(device_state(spelling))) {}

Device Device::current() {
  if (current_device != nullptr) return Device(current_device);
  return Device(value_or_throw(device_state("")));
}

void Device::set_current(Device device) { current_device = device.state_; }

Device Device::host() { return Device(value_or_throw(host_device_state())); }

const std::string& Device::spelling() const { return state_->opened->spelling; }
const std::string& Device::name() const { return state_->opened->info.name; }
bool Device::synchronous() const { return state_->synchronous; }
void Device::synchronize() const { throw_if_error(vm::synchronize(state_)); }

void Device::barrier() const { throw_if_error(vm::barrier(state_)); }
void synchronize() { throw_if_error(vm::synchronize_all()); }

void retire(std::string_view provider) {
  if (current_device != nullptr && current_device->opened->provider == provider) current_device = nullptr;
  throw_if_error(retire_provider(provider));
}

memory::Stats Device::memory_stats() const { return state_->allocator->stats(); }
void Device::trim() const {
  throw_if_error(vm::synchronize(state_));
  state_->allocator->trim();
  vm::trim_staging(state_);
  if (state_->ops.device_trim != nullptr) state_->ops.device_trim(state_->handle);
}

}  // namespace tenon
