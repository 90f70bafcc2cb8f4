#include "providers/cuda/modules/modules.h"

#include <fmt/core.h>

#include <algorithm>

#include "providers/cuda/modules/source.h"
#include "sdk/provider/modules/slots.h"
#include "sdk/provider/modules/source.h"
#include "sdk/provider/modules/store.h"

namespace tenon::provider::cuda {
namespace {

ep_status dialect_info(ep_device* device, uint32_t index, ep_dialect_info* out_info, ep_error** error) {
  if (index != 0) {
    return fail(device->host, error, EP_STATUS_NOT_FOUND, "cuda compiles one dialect; there is no dialect %u.", index);
  }
  const Toolchain& tools = device->compiler->toolchain();
  if (!tools.sentence.empty()) {
    return fail_text(device->host, error, EP_STATUS_NOT_FOUND, tools.sentence, tools.remedy);
  }
  ep_dialect_info info = cuda_dialect(device->facts);
  info.compiler = to_ep_string(tools.name);
  fill(out_info, info);
  return EP_STATUS_OK;
}

// Loads `code`; the device's context is current.
ep_status load(ep_module* module, const ep_module_desc& desc, const std::string& code, ep_error** error) {
  const CUresult result = module->device->driver->module_load_data(&module->handle, code.data());
  if (result == CUDA_SUCCESS) return EP_STATUS_OK;
  module->handle = nullptr;
  const ep_status status = status_of(result);
  if (status != EP_STATUS_INTERNAL) return driver_failed(module->device, result, "loading a module", error);
  return fail_text(module->host, error, EP_STATUS_UNSUPPORTED,
                   fmt::format("The driver cannot load the module '{}': {}.", shown(desc.name),
                               module->device->driver->text_of(result)));
}

// Compiles the text, or finds a kept result, and loads it.
ep_status make_code(ep_module* module, const ep_module_desc& desc, uint64_t* out_bytes, ep_error** error) {
  ep_device* device = module->device;
  const ep_host* host = device->host;
  const std::string source = source_of(desc);
  const Toolchain& tools = device->compiler->toolchain();
  if (!tools.sentence.empty()) return fail_text(host, error, EP_STATUS_UNSUPPORTED, tools.sentence, tools.remedy);
  const std::string everything = device->compiler->everything_of(source);
  const std::string kept = kept_binary(host, everything);
  *out_bytes = kept.size();
  if (!kept.empty() && load(module, desc, kept, nullptr) == EP_STATUS_OK) {
    log_line(host, EP_LOG_DEBUG, "compile", "module %s: read from the cache", shown(desc.name).c_str());
    return EP_STATUS_OK;
  }
  const CompileResult compiled = device->compiler->compile(source);
  diagnose(desc, compiled.output);
  if (compiled.status == EP_STATUS_INVALID_ARGUMENT) return refuse_text(host, desc, tools.name, compiled.output, error);
  if (compiled.status != EP_STATUS_OK) {
    return fail_text(host, error, compiled.status, compiled.sentence, compiled.remedy);
  }
  *out_bytes = compiled.binary.size();
  if (const ep_status status = load(module, desc, compiled.binary, error); status != EP_STATUS_OK) return status;
  log_line(host, EP_LOG_DEBUG, "compile", "module %s: compiled by %s", shown(desc.name).c_str(), tools.name.c_str());
  keep_binary(host, everything, compiled.binary);
  return EP_STATUS_OK;
}

int attribute(const Driver& driver, CUfunction function, CUfunction_attribute which) {
  int value = 0;
  return driver.func_get_attribute(&value, which, function) == CUDA_SUCCESS ? std::max(value, 0) : 0;
}

ep_status make_kernel(ep_module* module, const ep_module_desc& desc, const ep_module_entry& entry, ep_error** error) {
  const Driver& driver = *module->device->driver;
  auto kernel = std::make_unique<ep_kernel>();
  kernel->host = module->host;
  kernel->name = to_view(entry.name);
  kernel->flags = entry.flags;
  kernel->buffer_count = entry.buffer_count;
  std::copy(entry.group, entry.group + 3, kernel->group);
  const CUresult result = driver.module_get_function(&kernel->function, module->handle, kernel->name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND) {
    return fail_text(
        module->host, error, EP_STATUS_INVALID_ARGUMENT,
        fmt::format("The text of the module '{}' does not define the kernel {}.", shown(desc.name), kernel->name));
  }
  if (result != CUDA_SUCCESS) return driver_failed(module->device, result, "finding a kernel", error);
  const auto items = static_cast<int>(entry.group[0] * entry.group[1] * entry.group[2]);
  const int most = attribute(driver, kernel->function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  if (most != 0 && items > most) {
    return fail(module->host, error, EP_STATUS_UNSUPPORTED,
                "The kernel %s has groups of %d work-items; %s runs it in groups of %d at most.", kernel->name.c_str(),
                items, module->device->facts.name.c_str(), most);
  }
  kernel->info.registers = static_cast<uint32_t>(attribute(driver, kernel->function, CU_FUNC_ATTRIBUTE_NUM_REGS));
  kernel->info.spilled_bytes =
      static_cast<uint32_t>(attribute(driver, kernel->function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  int blocks = 0;
  if (driver.occupancy_max_active_blocks(&blocks, kernel->function, items, 0) == CUDA_SUCCESS) {
    kernel->info.groups_at_once = static_cast<uint32_t>(std::max(blocks, 0));
  }
  module->kernels.push_back(std::move(kernel));
  return EP_STATUS_OK;
}

ep_status make_module(ep_module* module, const ep_module_desc& desc, uint64_t* out_bytes, ep_error** error) {
  const Current current(module->device);
  if (current.result() != CUDA_SUCCESS) {
    return driver_failed(module->device, current.result(), "making a module", error);
  }
  if (const ep_status status = make_code(module, desc, out_bytes, error); status != EP_STATUS_OK) return status;
  for (uint32_t i = 0; i < desc.entry_count; ++i) {
    const ep_status status = make_kernel(module, desc, desc.entries[i], error);
    if (status != EP_STATUS_OK) return status;
  }
  return EP_STATUS_OK;
}

ep_status module_create(ep_device* device, const ep_module_desc* desc, ep_module** out_module, ep_module_info* out_info,
                        ep_error** error) {
  const ep_host* host = device->host;
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  const ep_status known = check_module(host, *desc, cuda_dialect(device->facts), error);
  if (known != EP_STATUS_OK) return known;
  ep_module* module = make<ep_module>(host);
  module->device = device;
  uint64_t bytes = 0;
  ep_status status = EP_STATUS_OK;
  try {
    status = make_module(module, *desc, &bytes, error);
  } catch (...) {
    destroy(module);
    throw;
  }
  if (status != EP_STATUS_OK) {
    destroy(module);
    return status;
  }
  ep_module_info info{};
  info.host_bytes = info.device_bytes = bytes;
  *out_module = module;
  fill(out_info, info);
  return EP_STATUS_OK;
}

}  // namespace

void fill_modules(ep_device_ops* ops) { fill_module_slots<dialect_info, module_create, kernel_launch>(ops); }

}  // namespace tenon::provider::cuda

ep_module::~ep_module() {
  if (handle == nullptr) return;
  const tenon::provider::cuda::Current current(device);
  if (current.result() == CUDA_SUCCESS) device->driver->module_unload(handle);
}
