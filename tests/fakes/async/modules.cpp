// Kernel modules. The text is not compiled: an entry runs the function that the test has registered under its name
// (async_kernels). The order of its accesses is checked like the order of a primitive's accesses.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sdk/provider/negotiate.h"
#include "tests/fakes/async/device.h"

struct ep_kernel {
  const tenon::fakes::AsyncKernel* does = nullptr;
  std::string name;
  uint64_t flags = 0;
  std::atomic<int> lists{0};  // command lists that launch it
};

struct ep_module {
  ep_device* device = nullptr;
  std::vector<std::unique_ptr<ep_kernel>> kernels;
};

namespace tenon::fakes {
namespace {

constexpr uint64_t touched_scratch = 4;  // bytes of workspace and scratch that are checked

std::string text_of(ep_string text) { return std::string(text.data, text.size); }

ep_status dialect_info(ep_device* device, uint32_t index, ep_dialect_info* out, ep_error** error) {
  if (index != 0) return fail(device->host, error, EP_STATUS_NOT_FOUND, "the asynchronous fake has one dialect.");
  ep_dialect_info info{};
  info.dialect = EP_DIALECT_C;
  info.compiler = {"names", 5};
  info.features = EP_DIALECT_FEATURE_F64 | EP_DIALECT_FEATURE_I64;
  info.group_items = 1;
  info.greatest_buffers = 64;
  info.parameter_bytes = 4096;
  info.shared_bytes = 4096;
  for (int axis = 0; axis < 3; ++axis) {
    info.group_dims[axis] = 1;
    info.groups[axis] = axis == 0 ? uint64_t{1} << 40 : 1;
  }
  provider::fill(out, info);
  return EP_STATUS_OK;
}

ep_status module_create(ep_device* device, const ep_module_desc* desc, ep_module** out, ep_module_info* out_info,
                        ep_error** error) {
  if (is_lost()) return lost(device, error);
  if (const ep_status status = compile(device, desc->text.size, error); status != EP_STATUS_OK) return status;
  auto module = std::make_unique<ep_module>();
  module->device = device;
  for (uint32_t i = 0; i < desc->entry_count; ++i) {
    const std::string name = text_of(desc->entries[i].name);
    const auto found = async_kernels().find(name);
    if (found == async_kernels().end()) {
      const std::string said = fmt::format("line 1: nobody has registered '{}'.", name);
      if (desc->diagnose != nullptr) desc->diagnose(desc->context, {said.data(), said.size()});
      return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT, said);
    }
    module->kernels.push_back(std::make_unique<ep_kernel>());
    module->kernels.back()->does = &found->second;
    module->kernels.back()->name = name;
    module->kernels.back()->flags = desc->entries[i].flags;
  }
  async_control().modules.fetch_add(1);
  ep_module_info info{};
  info.host_bytes = desc->text.size;
  provider::fill(out_info, info);
  *out = module.release();
  return EP_STATUS_OK;
}

void module_destroy(ep_device*, ep_module* module) {
  if (module == nullptr) return;
  for (const auto& kernel : module->kernels) {
    if (kernel->lists != 0) async_control().violate("a module is destroyed whose kernel a command list launches");
  }
  async_control().modules.fetch_sub(1);
  delete module;
}

ep_status kernel_get(ep_module* module, ep_string entry, ep_kernel** out, ep_kernel_info* out_info, ep_error** error) {
  for (const auto& kernel : module->kernels) {
    if (kernel->name != text_of(entry)) continue;
    provider::fill(out_info, ep_kernel_info{});
    *out = kernel.get();
    return EP_STATUS_OK;
  }
  return fail(module->device->host, error, EP_STATUS_NOT_FOUND, "the text has no such entry.");
}

ep_status kernel_launch(ep_kernel* kernel, ep_stream* stream, const ep_kernel_launch* launch, ep_fault*,
                        ep_error** error) {
  AsyncControl& control = async_control();
  control.launches.fetch_add(1, std::memory_order_relaxed);
  begin_work(stream);
  if (is_lost()) return lost(stream->device, error);
  if (due(control.fail_launch, control.failed_launches)) {
    return fail(stream->device->host, error, EP_STATUS_INTERNAL, "this launch was told to fail.");
  }
  Command command;
  command.kind = Command::kernel;
  command.tag = launch->tag;
  command.kernel_run = kernel;
  command.bytes = launch->groups[0] * launch->groups[1] * launch->groups[2];
  const auto* parameters = static_cast<const char*>(launch->parameters);
  command.early = std::make_shared<std::vector<char>>(parameters, parameters + launch->parameter_bytes);
  command.operands = std::make_shared<std::vector<char*>>();
  std::vector<Access> accesses;
  for (uint32_t i = 0; i < launch->buffer_count; ++i) {
    const bool given = launch->buffers[i].memory != nullptr;
    command.operands->push_back(given ? address(launch->buffers[i]) : nullptr);
    if (given) accesses.push_back({launch->buffers[i], kernel->does->bytes, (kernel->does->written >> i & 1) != 0});
  }
  std::stable_sort(accesses.begin(), accesses.end(),
                   [](const Access& a, const Access& b) { return a.write < b.write; });
  if (launch->workspace.memory != nullptr) {
    command.workspace = address(launch->workspace);
    accesses.push_back({launch->workspace, touched_scratch, true});
  }
  if (launch->scratch.memory != nullptr) {
    command.scratch = address(launch->scratch);
    accesses.push_back({launch->scratch, touched_scratch, true});
  }
  check(stream, accesses.data(), accesses.size());
  stream->push(std::move(command));
  return EP_STATUS_OK;
}

}  // namespace

std::map<std::string, AsyncKernel>& async_kernels() {
  static auto* all = new std::map<std::string, AsyncKernel>;
  return *all;
}

void count_list(ep_kernel* kernel, int change) { kernel->lists += change; }

void run_kernel(const Command& command, std::vector<ep_fault>* faults) {
  std::vector<char*> buffers = *command.operands;
  if (command.workspace != nullptr) buffers.push_back(command.workspace);
  if (command.scratch != nullptr) buffers.push_back(command.scratch);
  ep_fault fault{command.tag, 0, 0, 0, 0, 0};
  command.kernel_run->does->run(buffers.data(), command.early->data(), command.bytes, &fault);
  if (fault.code != 0) faults->push_back(fault);
}

void fill_modules(ep_device_ops* ops) {
  ops->dialect_info = dialect_info;
  ops->module_create = module_create;
  ops->module_destroy = module_destroy;
  ops->kernel_get = kernel_get;
  ops->kernel_launch = kernel_launch;
}

}  // namespace tenon::fakes
