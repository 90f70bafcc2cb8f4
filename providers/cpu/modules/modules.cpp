#include "providers/cpu/modules/modules.h"

#include <fmt/core.h>

#include "providers/cpu/modules/source.h"
#include "providers/cpu/threads/clock.h"
#include "sdk/provider/modules/slots.h"
#include "sdk/provider/modules/source.h"
#include "sdk/provider/modules/store.h"

namespace tenon::provider::cpu {
namespace {

constexpr uint64_t cache_line = 64;

uint32_t vector_bytes_of(SimdLevel level) {
  switch (level) {
    case SimdLevel::avx3: return 64;
    case SimdLevel::avx2: return 32;
    case SimdLevel::baseline: break;
  }
  return 16;
}

Compiler& compiler_of(ep_device* device) { return static_cast<OpenDevice*>(device)->compiler; }

ep_status dialect_info(ep_device* device, uint32_t index, ep_dialect_info* out_info, ep_error** error) {
  const ep_host* host = device->host;
  if (index != 0)
    return fail(host, error, EP_STATUS_NOT_FOUND, "cpu compiles one dialect; there is no dialect %u.", index);
  const Toolchain& tools = compiler_of(device).toolchain();
  if (!tools.sentence.empty()) return fail_text(host, error, EP_STATUS_NOT_FOUND, tools.sentence, tools.remedy);
  ep_dialect_info info = c_dialect();
  info.compiler = to_ep_string(tools.name);
  info.vector_bytes = compiler_of(device).target();
  fill(out_info, info);
  return EP_STATUS_OK;
}

// Compiles `source`, or loads a compiled version that the host kept.
ep_status load(ep_device* device, const ep_module_desc& desc, const std::string& source,
               std::unique_ptr<Library>* out_library, uint64_t* out_bytes, ep_error** error) {
  const ep_host* host = device->host;
  const Toolchain& tools = compiler_of(device).toolchain();
  std::string why;
  std::string everything;
  if (tools.sentence.empty()) {
    everything = compiler_of(device).everything_of(source);
    const std::string kept = kept_binary(host, everything);
    if (!kept.empty()) *out_library = Library::load(kept, &why);
    *out_bytes = kept.size();
    if (*out_library != nullptr) {
      log_line(host, EP_LOG_DEBUG, "compile", "module %s: read from the cache", shown(desc.name).c_str());
      return EP_STATUS_OK;
    }
  }
  const int64_t begin = now();
  CompileResult compiled = compiler_of(device).compile(source);
  diagnose(desc, compiled.output);
  if (compiled.status == EP_STATUS_INVALID_ARGUMENT) return refuse_text(host, desc, tools.name, compiled.output, error);
  if (compiled.status != EP_STATUS_OK)
    return fail_text(host, error, compiled.status, compiled.sentence, compiled.remedy);
  *out_library = Library::load(compiled.binary, &why);
  *out_bytes = compiled.binary.size();
  if (*out_library == nullptr) {
    return fail_text(host, error, EP_STATUS_UNSUPPORTED,
                     fmt::format("The compiled module '{}' cannot be loaded: {}.", shown(desc.name), why));
  }
  log_line(host, EP_LOG_DEBUG, "compile", "module %s: compiled by %s in %.1f ms", shown(desc.name).c_str(),
           tools.name.c_str(), static_cast<double>(now() - begin) * 1e-6);
  keep_binary(host, everything, compiled.binary);
  return EP_STATUS_OK;
}

std::unique_ptr<ep_kernel> kernel_of(const ep_device& device, const Library& library, const ep_module_entry& entry) {
  auto kernel = std::make_unique<ep_kernel>();
  kernel->host = device.host;
  kernel->threads = device.threads;
  kernel->name = to_view(entry.name);
  kernel->flags = entry.flags;
  kernel->buffer_count = entry.buffer_count;
  kernel->parameter_bytes = entry.parameter_bytes;
  kernel->local_stride = (entry.shared_bytes + cache_line - 1) / cache_line * cache_line;
  kernel->function = library.function(kernel->name);
  return kernel;
}

ep_status module_create(ep_device* device, const ep_module_desc* desc, ep_module** out_module, ep_module_info* out_info,
                        ep_error** error) {
  const ep_host* host = device->host;
  if (const ep_status status = check_module(host, *desc, c_dialect(), error); status != EP_STATUS_OK) return status;
  const std::string source = source_of(*desc);
  std::unique_ptr<Library> library;
  uint64_t bytes = 0;
  const ep_status status = load(device, *desc, source, &library, &bytes, error);
  if (status != EP_STATUS_OK) return status;
  std::vector<std::unique_ptr<ep_kernel>> kernels;
  for (uint32_t i = 0; i < desc->entry_count; ++i) {
    kernels.push_back(kernel_of(*device, *library, desc->entries[i]));
    if (kernels.back()->function != nullptr) continue;
    return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT,
                     fmt::format("The text of the module '{}' does not define the entry {}.", shown(desc->name),
                                 kernels.back()->name));
  }
  ep_module_info info{};
  info.host_bytes = bytes;
  *out_module = make<ep_module>(host, host, std::move(library), std::move(kernels));
  fill(out_info, info);
  return EP_STATUS_OK;
}

}  // namespace

OpenDevice::OpenDevice(const ep_host* from, SimdLevel level, int32_t most_threads)
    : ep_device{from, level, most_threads, {from, most_threads}}, compiler(from, vector_bytes_of(level)) {}

void fill_modules(ep_device_ops* ops) { fill_module_slots<dialect_info, module_create, kernel_launch>(ops); }

}  // namespace tenon::provider::cpu
