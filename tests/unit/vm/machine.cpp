#include "tests/unit/vm/machine.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "core/vm/engine.h"
#include "loader/loader.h"

namespace tenon::testing {
namespace {

[[noreturn]] void give_up(const Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

std::mutex kernels_mutex;

}  // namespace

Machine& Machine::get() {
  static auto* machine = new Machine;
  return *machine;
}

Machine::Machine() {
  loader::register_provider("async", fakes::async_query);
  for (int i = 0; i < kDevices; ++i) {
    Result<DeviceState*> state = device_state("async:" + std::to_string(i));
    if (!state.ok()) give_up(state.status());
    devices_[i] = state.value();
    const Result<uint16_t> third = vm::create_stream(devices_[i]);
    if (!third.ok()) give_up(third.status());
  }
}

Kernel* Machine::mix(int device, int64_t words, uint64_t scratch) {
  std::lock_guard lock(kernels_mutex);
  for (const Cached& cached : kernels_) {
    if (cached.device == device && cached.words == words && cached.scratch == scratch) return cached.kernel;
  }
  DeviceState* state = devices_[device];
  ep_primitive_desc desc{};
  desc.kind = fakes::kMix;
  desc.operand_count = 3;
  for (int i = 0; i < 3; ++i) {
    desc.operands[i].role = i == 0 ? EP_ROLE_DST : i == 1 ? EP_ROLE_SRC : EP_ROLE_SRC_B;
    desc.operands[i].dtype = EP_DTYPE_i32;
    desc.operands[i].rank = 1;
    desc.operands[i].dims[0] = words;
    desc.operands[i].strides[0] = 1;
  }
  auto* kernel = new Kernel;
  kernel->device = state;
  kernel->scratch_bytes = scratch;
  ep_primitive_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
  ep_error* error = nullptr;
  const ep_status code = state->ops.primitive_create(state->handle, &desc, &kernel->primitive, &info, &error);
  if (code != EP_STATUS_OK) give_up(loader::take_error(code, error, "creating mix"));
  kernels_.push_back({device, words, scratch, kernel});
  return kernel;
}

uint64_t Machine::scratch_bytes(int device) const {
  uint64_t bytes = 0;
  vm::DeviceQueue& queue = *devices_[device]->queue;
  for (uint16_t i = 0; i < queue.stream_count(); ++i) bytes += queue.stream(i).scratch.size;
  return bytes;
}

Result<StorageHandle> Machine::allocate(int device, uint64_t words) const {
  std::vector<vm::Ticket> waits;
  TENON_ASSIGN_OR_RETURN(Storage * storage, Storage::make(devices_[device], words * 4, &waits));
  return StorageHandle(storage);
}

Status Machine::upload(Storage* storage, uint64_t first, const std::vector<uint32_t>& words) const {
  const vm::Operand dst{storage, first * 4, true, words.size() * 4 == storage->bytes};
  return vm::upload(dst, words.data(), words.size() * 4, {});
}

Result<std::vector<uint32_t>> Machine::download(Storage* storage) const {
  std::vector<uint32_t> words(storage->bytes / 4);
  TENON_RETURN_IF_ERROR(vm::download(words.data(), {storage, 0, false, false}, storage->bytes));
  return words;
}

Status Machine::mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how,
                    bool whole) {
  return mix(device, stream, dst, a, b, words, tag, how, whole, {});
}

Status Machine::mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how,
                    bool whole, Extra extra) {
  const vm::Operand operands[] = {{dst.storage, dst.first * 4, true, whole},
                                  {a.storage, a.first * 4, false, false},
                                  {b.storage, b.first * 4, false, false}};
  ep_scalar scalars[2] = {{EP_DTYPE_i64, 0, {}}, {EP_DTYPE_i64, 0, {}}};
  scalars[0].value.i64 = tag;
  scalars[1].value.i64 = how;
  vm::OpLaunch launch;
  launch.kernel = mix(device, words, extra.scratch);
  launch.workspace_bytes = extra.workspace;
  launch.operands = operands;
  launch.scalars = scalars;
  launch.scalar_count = 2;
  launch.op = "mix";
  launch.stream = static_cast<uint16_t>(stream);
  return vm::launch(launch, {});
}

Status Machine::copy(View dst, View src, int64_t words, bool whole) const {
  return vm::copy({dst.storage, dst.first * 4, true, whole}, {src.storage, src.first * 4, false, false},
                  static_cast<uint64_t>(words) * 4, {});
}

uint64_t Machine::settle() const {
  uint64_t errors = 0;
  for (DeviceState* device : devices_) {
    while (!vm::synchronize(device).ok()) ++errors;
  }
  return errors;
}

}  // namespace tenon::testing
