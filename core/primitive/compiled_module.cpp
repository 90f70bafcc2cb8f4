#include "core/primitive/compiled_module.h"

#include <mutex>
#include <unordered_set>

#include "core/background/stop.h"
#include "core/primitive/primitive_cache.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

// All modules that exist; none outlives its device.
struct LiveModules {
  std::mutex mutex;
  std::unordered_set<CompiledModule*> all;
};

LiveModules& live_modules() {
  static auto* modules = new LiveModules;
  return *modules;
}

ep_string borrowed(const std::string& text) { return {text.data(), text.size()}; }

// The description of a text for the provider, valid as long as the text.
struct Description {
  explicit Description(const ModuleText& text) {
    for (const KernelEntry& entry : text.entries) {
      entries.push_back({borrowed(entry.name),
                         entry.flags,
                         entry.buffer_count,
                         entry.parameter_bytes,
                         {entry.group[0], entry.group[1], entry.group[2]},
                         entry.shared_bytes});
    }
    for (const auto& [name, value] : text.constants) constants.push_back({borrowed(name), value});
    desc.struct_size = sizeof desc;
    desc.struct_type = EP_STRUCT_MODULE_DESC;
    desc.dialect = text.dialect;
    desc.entry_count = static_cast<uint32_t>(entries.size());
    desc.entries = entries.data();
    desc.constant_count = static_cast<uint32_t>(constants.size());
    desc.constants = constants.empty() ? nullptr : constants.data();
    desc.name = borrowed(text.name);
    desc.text = borrowed(text.text);
    desc.diagnose = [](void* context, ep_string said) {
      static_cast<std::string*>(context)->assign(said.data != nullptr ? said.data : "", said.size);
    };
    desc.context = &output;
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  std::vector<ep_module_entry> entries;
  std::vector<ep_module_constant> constants;
  std::string output;
  ep_module_desc desc{};
};

// Asks the provider once.
Status ask(DeviceState* device, const ep_module_desc& desc, const std::string& name, ep_module** module,
           ep_module_info* info) {
  *info = {};
  info->struct_size = sizeof *info;
  info->struct_type = EP_STRUCT_MODULE_INFO;
  const std::string doing = fmt::format("compiling {} on {}", name, device->opened->spelling);
  ep_error* error = nullptr;
  const auto create = [&](ep_error** out) {
    return device->ops.module_create(device->handle, &desc, module, info, out);
  };
  const ep_status code = stoppable(create, &error);
  const Status status = loader::take_error(code, error, code == EP_STATUS_UNSUPPORTED ? std::string() : doing);
  return code == EP_STATUS_CANCELLED ? cancelled_error(status, doing) : status;
}

Status get_kernels(CompiledModule* module, const ModuleText& text) {
  for (const KernelEntry& entry : text.entries) {
    CompiledKernel kernel;
    kernel.module = module;
    kernel.entry = entry;
    kernel.info.struct_size = sizeof kernel.info;
    kernel.info.struct_type = EP_STRUCT_KERNEL_INFO;
    ep_error* error = nullptr;
    const ep_status code =
        module->device->ops.kernel_get(module->handle, borrowed(entry.name), &kernel.handle, &kernel.info, &error);
    TENON_RETURN_IF_ERROR(loader::take_error(
        code, error,
        fmt::format("taking the kernel {} of {} on {}", entry.name, text.name, module->device->opened->spelling)));
    module->kernels.push_back(std::move(kernel));
  }
  return Status();
}

}  // namespace

CompiledModule::~CompiledModule() {
  ep_module* last = nullptr;
  {
    std::lock_guard lock(live_modules().mutex);
    live_modules().all.erase(this);
    last = std::exchange(handle, nullptr);
  }
  if (last != nullptr) device->ops.module_destroy(device->handle, last);
}

std::vector<Dialect> dialects_of(DeviceState* device, Status* why_not) {
  std::vector<Dialect> all;
  Status reason(Code::unsupported, fmt::format("{} does not compile kernel texts.", device->opened->spelling));
  while (takes_modules(device)) {
    Dialect dialect;
    dialect.info.struct_size = sizeof dialect.info;
    dialect.info.struct_type = EP_STRUCT_DIALECT_INFO;
    ep_error* error = nullptr;
    const ep_status code =
        device->ops.dialect_info(device->handle, static_cast<uint32_t>(all.size()), &dialect.info, &error);
    if (code != EP_STATUS_OK) {
      reason = loader::take_error(code, error, {});
      break;
    }
    const ep_string compiler = std::exchange(dialect.info.compiler, ep_string{});
    if (compiler.data != nullptr) dialect.compiler.assign(compiler.data, compiler.size);
    all.push_back(std::move(dialect));
  }
  if (all.empty() && why_not != nullptr) *why_not = reason;
  return all;
}

Result<std::shared_ptr<CompiledModule>> compile_module(DeviceState* device, const ModuleText& text,
                                                       std::string* output) {
  if (!takes_modules(device)) {
    return Status(Code::unsupported, fmt::format("{} does not compile kernel texts.", device->opened->spelling));
  }
  Description description(text);
  auto module = std::make_shared<CompiledModule>();
  ep_module_info info;
  Status made = ask(device, description.desc, text.name, &module->handle, &info);
  if (made.code() == Code::out_of_device_memory) {
    clear_primitive_cache(device);
    device->allocator->recover();
    made = ask(device, description.desc, text.name, &module->handle, &info);
  }
  if (output != nullptr) *output = description.output;
  TENON_RETURN_IF_ERROR(made);
  module->device = device;
  module->name = text.name;
  module->output = std::move(description.output);
  module->host_bytes = info.host_bytes;
  module->device_bytes = info.device_bytes;
  {
    std::lock_guard lock(live_modules().mutex);
    live_modules().all.insert(module.get());
  }
  TENON_RETURN_IF_ERROR(get_kernels(module.get(), text));
  return module;
}

void destroy_modules(DeviceState* device) {
  std::lock_guard lock(live_modules().mutex);
  for (CompiledModule* module : live_modules().all) {
    if (module->device != device || module->handle == nullptr) continue;
    device->ops.module_destroy(device->handle, std::exchange(module->handle, nullptr));
    for (CompiledKernel& kernel : module->kernels) kernel.handle = nullptr;
  }
}

}  // namespace tenon
