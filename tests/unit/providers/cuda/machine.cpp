// tests/unit/vm/machine.h on the cuda provider: the same library registered under two names, so that there are two
// devices whatever the machine has. An instruction `mix`, dst = 31*a + b + tag, is three launches; one that is to fail
// divides integers by 0.
#include "tests/unit/vm/machine.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>

#include "loader/loader.h"

namespace tenon::testing {
namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

ep_plugin_query_fn query_of(const char* path) {
  if (path == nullptr) give_up("CUDA_PROVIDER names no library.");
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) give_up(dlerror());
  return reinterpret_cast<ep_plugin_query_fn>(dlsym(library, EP_PLUGIN_QUERY_SYMBOL));
}

// dst = op(a, b) on i32 over `words` words; b is launch scalar 1 where `scalar` is true.
ep_primitive_desc binary_desc(int32_t op, int64_t words, bool scalar) {
  ep_primitive_desc desc{};
  desc.kind = EP_PRIMITIVE_binary;
  desc.attributes.binary.op = op;
  desc.operand_count = 3;
  const int32_t roles[] = {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B};
  for (int i = 0; i < 3; ++i) {
    desc.operands[i].role = roles[i];
    desc.operands[i].dtype = EP_DTYPE_i32;
    if (scalar && i == 2) {
      desc.operands[i].flags = EP_OPERAND_FLAG_SCALAR;
      continue;
    }
    desc.operands[i].rank = 1;
    desc.operands[i].dims[0] = words;
    desc.operands[i].strides[0] = 1;
  }
  return desc;
}

Kernel* kernel_of(DeviceState* state, int32_t op, int64_t words, bool scalar) {
  static auto* mutex = new std::mutex;
  static auto* kernels = new std::map<std::tuple<DeviceState*, int32_t, int64_t, bool>, Kernel*>;
  std::lock_guard lock(*mutex);
  Kernel*& kernel = (*kernels)[{state, op, words, scalar}];
  if (kernel != nullptr) return kernel;
  kernel = new Kernel;
  kernel->device = state;
  const ep_primitive_desc desc = binary_desc(op, words, scalar);
  ep_primitive_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
  ep_error* error = nullptr;
  const ep_status code = state->ops.primitive_create(state->handle, &desc, &kernel->primitive, &info, &error);
  if (code != EP_STATUS_OK) give_up(loader::take_error(code, error, "creating a kernel").message());
  return kernel;
}

struct Binary {
  DeviceState* state;
  int32_t op;
  int stream;
  int64_t words;
};

Status run(const Binary& binary, Machine::View dst, bool whole, Machine::View a, Machine::View b, int64_t scalar) {
  const bool is_scalar = b.storage == nullptr;
  const vm::Operand operands[] = {{dst.storage, dst.first * 4, true, whole},
                                  {a.storage, a.first * 4, false, false},
                                  {b.storage, b.first * 4, false, false}};
  ep_scalar scalars[2] = {{EP_DTYPE_i32, 0, {}}, {EP_DTYPE_i32, 0, {}}};
  scalars[1].value.i64 = scalar;
  vm::OpLaunch launch;
  launch.kernel = kernel_of(binary.state, binary.op, binary.words, is_scalar);
  launch.operands = operands;
  launch.scalars = scalars;
  launch.scalar_count = 2;
  launch.op = "mix";
  launch.stream = static_cast<uint16_t>(binary.stream);
  return vm::launch(launch, {});
}

}  // namespace

Machine& Machine::get() {
  static auto* machine = new Machine;
  return *machine;
}

Machine::Machine() {
  const ep_plugin_query_fn query = query_of(std::getenv("CUDA_PROVIDER"));
  const char* names[kDevices] = {"cuda_a", "cuda_b"};
  for (int i = 0; i < kDevices; ++i) {
    loader::register_provider(names[i], query);
    Result<DeviceState*> state = device_state(std::string(names[i]) + ":0");
    if (!state.ok()) give_up(state.status().message());
    devices_[i] = state.value();
    const Result<uint16_t> third = vm::create_stream(devices_[i]);
    if (!third.ok()) give_up(third.status().message());
  }
}

// No kernel here asks for scratch.
uint64_t Machine::scratch_bytes(int) const { return 0; }

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
  DeviceState* state = devices_[device];
  const View none = {nullptr, 0};
  if (how != fakes::kMixRuns) {
    return run({state, EP_BINARY_div, stream, words}, dst, whole, a, none, 0);
  }
  TENON_ASSIGN_OR_RETURN(const StorageHandle between, allocate(device, static_cast<uint64_t>(words)));
  const View part = {between.get(), 0};
  // In TENON_VM=sync each returns the poison it reads; the last is the instruction's answer.
  (void)run({state, EP_BINARY_mul, stream, words}, part, true, a, none, 31);
  (void)run({state, EP_BINARY_add, stream, words}, part, false, part, none, tag);
  return run({state, EP_BINARY_add, stream, words}, dst, whole, b, part, 0);
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
