#include "tests/unit/vm/machine.h"

#include "core/tensor/opened_devices.h"

#include "core/vm/engine.h"
#include "loader/loader.h"

namespace tenon::testing {

Status Machine::open() {
  for (int i = 0; i < kDevices; ++i) {
    TENON_ASSIGN_OR_RETURN(devices_[i], device_state(spellings_[i]));
    while (streams_[i] < kStreams) {
      TENON_ASSIGN_OR_RETURN(const uint16_t made, vm::create_stream(devices_[i]));
      streams_[i] = made + 1;
    }
  }
  return Status();
}

void Machine::forget() {
  for (int i = 0; i < kDevices; ++i) {
    devices_[i] = nullptr;
    streams_[i] = 0;
  }
}

uint64_t Machine::scratch_bytes(int device) const {
  uint64_t bytes = 0;
  vm::DeviceQueue& queue = *devices_[device]->queue;
  for (uint16_t i = 0; i < queue.stream_count(); ++i) bytes += queue.stream(i).scratch.size;
  return bytes;
}

Result<StorageHandle> Machine::allocate(int device, uint64_t words) {
  TENON_ASSIGN_OR_RETURN(Storage * storage, Storage::make(devices_[device], words * 4));
  return StorageHandle(storage);
}

namespace {

// As for tensors: downloads the plain bytes, wherever they are.
Result<vm::Operand> operand(Machine::View at, bool write, bool whole) {
  if (at.storage == nullptr) return vm::Operand();
  TENON_ASSIGN_OR_RETURN(Storage * plain, SharedStorage(at.storage).plain(vm::Operand::use_of(write, whole)));
  return vm::Operand(plain, at.first * 4, write, whole);
}

}  // namespace

Status Machine::upload(Storage* storage, uint64_t first, const std::vector<uint32_t>& words) const {
  TENON_ASSIGN_OR_RETURN(const vm::Operand dst, operand({storage, first}, true, words.size() * 4 == storage->bytes));
  return vm::upload(dst, words.data(), words.size() * 4, {});
}

Result<std::vector<uint32_t>> Machine::download(Storage* storage) const {
  std::vector<uint32_t> words(storage->bytes / 4);
  TENON_ASSIGN_OR_RETURN(const vm::Operand src, operand({storage, 0}, false, false));
  TENON_RETURN_IF_ERROR(vm::download(words.data(), src, storage->bytes));
  return words;
}

Status Machine::copy(View dst, View src, int64_t words, bool whole) const {
  TENON_ASSIGN_OR_RETURN(const vm::Operand from, operand(src, false, false));
  TENON_ASSIGN_OR_RETURN(const vm::Operand to, operand(dst, true, whole));
  return vm::copy(to, from, static_cast<uint64_t>(words) * 4, {});
}

Status Machine::access(View at, int64_t words, bool reads, bool writes, std::function<void(uint32_t*)> function) const {
  const auto bytes = static_cast<uint64_t>(words) * 4;
  const bool whole = writes && !reads && bytes == at.storage->bytes;
  TENON_ASSIGN_OR_RETURN(const vm::Operand bytes_at, operand(at, writes, whole));
  return vm::access(bytes_at, bytes, reads,
                    [run = std::move(function)](void* data) { run(static_cast<uint32_t*>(data)); });
}

uint64_t Machine::settle() const {
  uint64_t errors = 0;
  for (DeviceState* device : devices_) {
    while (!vm::synchronize(device).ok()) ++errors;
  }
  return errors;
}

Result<Primitive*> Machine::make_primitive(DeviceState* device, const ep_primitive_desc& desc) {
  ep_primitive_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
  ep_primitive* handle = nullptr;
  ep_error* error = nullptr;
  const ep_status code = device->ops.primitive_create(device->handle, &desc, &handle, &info, &error);
  TENON_RETURN_IF_ERROR(loader::take_error(code, error, "creating mix on " + device->opened->spelling));
  auto* primitive = new Primitive;
  primitive->device = device;
  primitive->handle = handle;
  return primitive;
}

Status Machine::launch(const Launch& launch) {
  TENON_ASSIGN_OR_RETURN(const vm::Operand a, operand(launch.a, false, false));
  TENON_ASSIGN_OR_RETURN(const vm::Operand b, operand(launch.b, false, false));
  TENON_ASSIGN_OR_RETURN(const vm::Operand dst, operand(launch.dst, true, launch.whole));
  const vm::Operand operands[] = {dst, a, b};
  vm::OpLaunch op;
  op.primitive = launch.primitive;
  op.workspace_bytes = launch.workspace;
  op.operands = operands;
  op.scalars = launch.scalars;
  op.scalar_count = 2;
  static constexpr OpName mix{"mix"};
  op.op = &mix;
  op.stream = static_cast<uint16_t>(launch.stream);
  return vm::launch(op, {});
}

}  // namespace tenon::testing
