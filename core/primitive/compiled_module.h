// CompiledModule: a text of the kernel compiler that a device has compiled (ep_api.h, "Kernel modules"), and its
// kernels. Internal to the library.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device/device_state.h"
#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon {

// A language that a device compiles: the fields of ep_dialect_info, whose text is copied.
struct Dialect {
  ep_dialect_info info{};  // the member `compiler` is empty
  std::string compiler;
};

// An entry of a text, as given to the compiler.
struct KernelEntry {
  std::string name;           // a C identifier
  uint64_t flags = 0;         // EP_ENTRY_FLAG_*
  uint32_t buffer_count = 0;  // not counting workspace and scratch
  uint32_t parameter_bytes = 0;
  std::array<uint32_t, 3> group{1, 1, 1};
  uint32_t shared_bytes = 0;
};

// A text to compile. Neither the text nor `name` may contain names from a program.
struct ModuleText {
  int32_t dialect = EP_DIALECT_C;
  std::string name;  // for messages
  std::string text;  // whole, with the prelude
  std::vector<KernelEntry> entries;
  std::vector<std::pair<std::string, ep_scalar>> constants;
};

struct CompiledModule;

// One entry of a module. It lives as long as the module.
struct CompiledKernel {
  const CompiledModule* module = nullptr;
  ep_kernel* handle = nullptr;
  KernelEntry entry;
  ep_kernel_info info{};
};

// Code that launches its kernels keeps it alive: programs, and segments that have not finished.
struct CompiledModule : std::enable_shared_from_this<CompiledModule> {
  CompiledModule() = default;
  CompiledModule(const CompiledModule&) = delete;
  CompiledModule& operator=(const CompiledModule&) = delete;
  ~CompiledModule();

  DeviceState* device = nullptr;
  ep_module* handle = nullptr;
  std::string name;
  std::string output;  // messages of the compiler: warnings
  uint64_t host_bytes = 0;
  uint64_t device_bytes = 0;
  std::vector<CompiledKernel> kernels;  // in the order of the text's entries
};

// True if `device` can compile texts.
inline bool takes_modules(const DeviceState* device) { return device->ops.module_create != nullptr; }

// The dialects of `device`, the best first. If there is none, `*why_not` (which may be null) gets the device's reason.
// The first call for a device may have to start a compiler.
std::vector<Dialect> dialects_of(DeviceState* device, Status* why_not = nullptr);

// Compiles `text` on `device`. Errors: unsupported, with the provider's reason; invalid_argument if the compiler
// rejects the text, with its first error and the line; cancelled; out_of_device_memory, after the caches were released
// and a second attempt failed too. `*output`, if it is not null, gets all messages of the compiler, also after an
// error.
Result<std::shared_ptr<CompiledModule>> compile_module(DeviceState* device, const ModuleText& text,
                                                       std::string* output = nullptr);

// Destroys every module of `device`, which is closing. A CompiledModule that is still referenced is empty afterwards.
void destroy_modules(DeviceState* device);

}  // namespace tenon
