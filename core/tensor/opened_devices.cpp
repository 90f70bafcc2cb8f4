// Opens and retires devices, and lists those that the process has opened.
#include "core/tensor/opened_devices.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "core/background/background.h"
#include "core/device/deterministic.h"
#include "core/device/deterministic_switch.h"
#include "core/device/device_state.h"
#include "core/device/process.h"
#include "core/memory/caching_allocator.h"
#include "core/primitive/compiled_graph.h"
#include "core/primitive/compiled_module.h"
#include "core/primitive/primitive_cache.h"
#include "core/vm/vm.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

// The bit of DeviceState::id that separates, in the tables of ops, the choices made for deterministic algorithms.
constexpr uint16_t kDeterministic = 0x8000;

// Opened devices, in the order of their ids. States are never destroyed: tensors may outlive main.
struct OpenedDevices {
  std::mutex mutex;
  std::deque<DeviceState> states;
  std::atomic<DeviceState*> host{nullptr};
  std::atomic<DeviceState*> standard{nullptr};  // the device that "" means
};

OpenedDevices& opened_devices() {
  static auto* devices = new OpenedDevices;
  return *devices;
}

bool pool_is_mapped(const loader::DeviceInfo& info) {
  constexpr uint64_t wanted = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT;
  return !info.pools.empty() && (info.pools[0].flags & wanted) == wanted;
}

bool fit_for_host(const loader::DeviceInfo& info) {
  return info.device_class == EP_DEVICE_CLASS_CPU && info.synchronous() && info.usable() && pool_is_mapped(info);
}

DeviceState* become_host(OpenedDevices& devices, DeviceState* state) {
  state->holds_host_data.store(true, std::memory_order_relaxed);
  devices.host.store(state, std::memory_order_release);
  return state;
}

// The spelling number for the last device in the list, which has none yet: the number of an earlier device with the
// same `spelling`, or a new one.
uint16_t spelling_number_of(const OpenedDevices& devices, const std::string& spelling) {
  uint16_t next = 0;
  for (size_t i = 0; i + 1 < devices.states.size(); ++i) {
    if (devices.states[i].opened->spelling == spelling) return devices.states[i].spelling_number;
    next = std::max<uint16_t>(next, devices.states[i].spelling_number + 1);
  }
  return next;
}

Result<DeviceState*> prepare(OpenedDevices& devices, loader::OpenDevice* opened) {
  for (DeviceState& state : devices.states) {
    if (state.opened == opened) return &state;
  }
  if (devices.states.size() == kDeterministic) {
    return Status(Code::internal, fmt::format("The process has opened {} devices.", devices.states.size()));
  }
  DeviceState& state = devices.states.emplace_back();
  state.opened = opened;
  state.handle = opened->handle;
  state.ops = opened->ops;
  state.id = static_cast<uint16_t>(devices.states.size() - 1);
  if (are_deterministic_algorithms_enabled()) state.id |= kDeterministic;
  state.spelling_number = spelling_number_of(devices, opened->spelling);
  state.synchronous = opened->info.synchronous();
  state.mapped = pool_is_mapped(opened->info);
  state.exclusive = !opened->info.pools.empty() && (opened->info.pools[0].flags & EP_POOL_FLAG_EXCLUSIVE) != 0;
  state.layouts = state.ops.layout_info != nullptr;
  for (const loader::MemoryPool& pool : opened->info.pools) {
    state.copy_granularity = std::max(state.copy_granularity, pool.copy_granularity);
  }
  state.allocator = memory::make_allocator(opened);
  Status status;
  if (state.synchronous) {
    const ep_stream_desc desc{sizeof desc, EP_STRUCT_STREAM_DESC, nullptr, EP_STREAM_COMPUTE, 0, 0};
    ep_error* error = nullptr;
    const ep_status code = state.ops.stream_create(state.handle, &desc, &state.inline_stream, &error);
    status = loader::take_error(code, error, fmt::format("creating the stream of {}", opened->spelling));
  }
  if (status.ok()) status = vm::attach(&state);
  if (!status.ok()) {
    vm::detach(&state);
    devices.states.pop_back();
    return status;
  }
  return &state;
}

// The allocator of a retired device: it allocates nothing and frees nothing.
class NoAllocator final : public memory::Allocator {
 public:
  Result<memory::Block> allocate(uint64_t, TicketList*) override {
    return Status(Code::cancelled, "The device's provider was retired.", "Open the device again.");
  }
  Result<memory::Block> allocate_aligned(uint64_t bytes, TicketList* waits) override { return allocate(bytes, waits); }
  Result<memory::Block> allocate_image(const Layout&, uint64_t bytes, TicketList* waits) override {
    return allocate(bytes, waits);
  }
  bool take_at_hand(uint64_t, memory::Block*) override { return false; }
  void release(const memory::Block&, std::span<const Ticket>) override {}
  void recover() override {}
  void trim() override {}
  void tick() override {}
  void tick_if_due() override {}
  memory::Stats stats() const override { return {}; }
};

Status check_unused(const DeviceState& state) {
  const uint64_t live = state.allocator->stats().live;
  const uint64_t scratch = state.thread_scratch.load(std::memory_order_relaxed);
  const int64_t borrowed = state.borrowed.load(std::memory_order_relaxed);
  if (const int64_t semaphores = state.semaphores.load(std::memory_order_relaxed); semaphores != 0) {
    return Status(Code::busy,
                  fmt::format("{} imported semaphores of {} are in use.", semaphores, state.opened->spelling),
                  "Drop the semaphores first.");
  }
  if (live <= scratch && borrowed == 0) return Status();
  return Status(Code::busy,
                fmt::format("Tensors still hold {} bytes and {} borrowed blocks of {}.", live - std::min(live, scratch),
                            borrowed, state.opened->spelling),
                "Drop the tensors, models and graphs on the device first.");
}

void destroy(OpenedDevices& devices, DeviceState& state) {
  end_compiling(&state);
  vm::destroy_command_lists(&state);
  destroy_graphs(&state);
  destroy_modules(&state);
  destroy_primitives(&state);
  vm::detach(&state);
  state.allocator = nullptr;
  state.allocator = std::make_unique<NoAllocator>();
  state.retired = true;
  DeviceState* gone = &state;
  DeviceState* none = nullptr;
  devices.host.compare_exchange_strong(gone, none);
  gone = &state;
  devices.standard.compare_exchange_strong(gone, none);
}

// The caller holds the lock of the opened devices, so no device is opened during the call.
Status retire_devices(OpenedDevices& devices, std::string_view provider) {
  std::vector<DeviceState*> ending;
  for (DeviceState& state : devices.states) {
    if (!state.retired && state.opened->provider == provider) ending.push_back(&state);
  }
  TENON_RETURN_IF_ERROR(vm::drain_all());
  for (DeviceState* state : ending) vm::release_scratch(state);
  for (DeviceState* state : ending) TENON_RETURN_IF_ERROR(check_unused(*state));
  for (DeviceState* state : ending) destroy(devices, *state);
  const Status retired = loader::retire(provider);
  for (DeviceState* state : ending) state->ops = state->opened->ops;
  return retired;
}

}  // namespace

Result<DeviceState*> device_state(std::string_view spelling) {
  OpenedDevices& devices = opened_devices();
  if (spelling.empty()) {
    if (DeviceState* standard = devices.standard.load(std::memory_order_acquire)) return standard;
  }
  std::lock_guard lock(devices.mutex);
  TENON_ASSIGN_OR_RETURN(loader::OpenDevice * opened, loader::open_device(spelling));
  TENON_ASSIGN_OR_RETURN(DeviceState * state, prepare(devices, opened));
  if (spelling.empty()) devices.standard.store(state, std::memory_order_release);
  return state;
}

Result<DeviceState*> adopt_device_state(std::string_view spelling, const ep_adopt_desc& desc) {
  TENON_RETURN_IF_ERROR(process::usable());
  OpenedDevices& devices = opened_devices();
  std::lock_guard lock(devices.mutex);
  TENON_ASSIGN_OR_RETURN(loader::OpenDevice * opened, loader::adopt_device(spelling, desc));
  return prepare(devices, opened);
}

Result<DeviceState*> host_device_state() {
  OpenedDevices& devices = opened_devices();
  if (DeviceState* host = devices.host.load(std::memory_order_acquire)) return host;
  {
    std::lock_guard lock(devices.mutex);
    for (DeviceState& state : devices.states) {
      if (!state.retired && fit_for_host(state.opened->info)) {
        return become_host(devices, &state);
      }
    }
  }
  for (const loader::ListedDevice& listed : loader::list_devices()) {
    if (!fit_for_host(listed.info)) continue;
    TENON_ASSIGN_OR_RETURN(DeviceState * state, device_state(listed.spelling));
    return become_host(devices, state);
  }
  return Status(
      Code::not_found,
      "No device can hold host data: none of the providers found offers a synchronous device of class CPU whose "
      "memory is host-visible and coherent.",
      "Install the CPU provider in the plug-in folder, or see `tenon doctor` for why it was refused.");
}

bool is_host_device(const DeviceState* device) {
  const DeviceState* host = opened_devices().host.load(std::memory_order_acquire);
  return device == (host != nullptr ? host : value_or_throw(host_device_state()));
}

void use_deterministic_algorithms(bool wanted) {
  OpenedDevices& devices = opened_devices();
  std::lock_guard lock(devices.mutex);
  deterministic_switch().store(wanted ? 1 : 0);
  for (DeviceState& state : devices.states) {
    state.id = static_cast<uint16_t>(wanted ? state.id | kDeterministic : state.id & ~kDeterministic);
  }
}

std::vector<DeviceState*> all_devices() {
  OpenedDevices& devices = opened_devices();
  std::lock_guard lock(devices.mutex);
  std::vector<DeviceState*> states;
  for (DeviceState& state : devices.states) {
    if (!state.retired) states.push_back(&state);
  }
  return states;
}

Status retire_provider(std::string_view provider) {
  TENON_RETURN_IF_ERROR(process::usable());
  OpenedDevices& devices = opened_devices();
  std::lock_guard lock(devices.mutex);
  return retire_devices(devices, provider);
}

}  // namespace tenon
