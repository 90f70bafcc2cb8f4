#include "core/tensor/device.h"

#include "core/device/call_context.h"
#include "core/device/device_state.h"
#include "core/tensor/opened_devices.h"
#include "core/vm/vm.h"
#include "loader/settings/settings.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

// Returns `state` for the member `function` of a Device. Errors: invalid_argument if the handle is empty.
DeviceState* require_state(DeviceState* state, const char* function) {
  if (state != nullptr) return state;
  throw Error(Code::invalid_argument, fmt::format("Device::{}: this handle names no device.", function),
              "Make the handle with a spelling, such as Device(\"cpu\"), or with Device::current().");
}

}  // namespace

Device::Device(std::string_view spelling) {
  if (spelling.empty()) {
    throw Error(Code::invalid_argument, "Device: the name of a device is empty.",
                "Write for example \"cpu\" or \"cuda:1\", or take Device::current().");
  }
  state_ = value_or_throw(device_state(spelling));
}

Device Device::current() {
  if (call_context.device != nullptr) return Device(call_context.device);
  return Device(value_or_throw(device_state("")));
}

void Device::set_current(Device device) { call_context.device = device.state_; }

Device Device::host() { return Device(value_or_throw(host_device_state())); }

const std::string& Device::spelling() const {
  // Never destroyed, because handles in statics may print at exit.
  static const std::string* const none = new std::string("no device");
  return state_ == nullptr ? *none : state_->opened->spelling;
}
const std::string& Device::name() const { return require_state(state_, "name")->opened->info.name; }
bool Device::synchronous() const { return require_state(state_, "synchronous")->synchronous; }
void Device::synchronize() const { throw_if_error(vm::synchronize(require_state(state_, "synchronize"))); }

void Device::barrier() const { throw_if_error(vm::barrier(require_state(state_, "barrier"))); }
void set_num_threads(int32_t count) {
  if (count < 1)
    throw Error(Subject{"set_num_threads"}, Code::invalid_argument,
                fmt::format("{} threads were requested; at least 1 is needed.", count));
  if (!all_devices().empty()) {
    throw Error(Subject{"set_num_threads"}, Code::busy, "a device is already open, and its number of threads is fixed.",
                "Call it before the first op, or set TENON_THREADS.");
  }
  throw_if_error(loader::set_argument("threads", fmt::format("{}", count)));
}
int32_t get_num_threads() { return loader::thread_limit(); }

void synchronize() { throw_if_error(vm::synchronize_all()); }

void retire(std::string_view provider) {
  if (call_context.device != nullptr && call_context.device->opened->provider == provider)
    call_context.device = nullptr;
  throw_if_error(retire_provider(provider));
}

memory::Stats Device::memory_stats() const {
  memory::Stats stats = require_state(state_, "memory_stats")->allocator->stats();
  stats.packed = state_->packed.load(std::memory_order_relaxed);
  stats.planned_peak = state_->planned_peak.load(std::memory_order_relaxed);
  stats.planned_lower_bound = state_->planned_lower_bound.load(std::memory_order_relaxed);
  return stats;
}

void Device::trim() const {
  throw_if_error(vm::synchronize(require_state(state_, "trim")));
  state_->allocator->trim();
  vm::trim_staging(state_);
  if (state_->ops.device_trim != nullptr) state_->ops.device_trim(state_->handle);
}

}  // namespace tenon
