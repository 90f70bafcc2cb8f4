#include "providers/opencl/modules/modules.h"

#include <fmt/core.h>

#include <algorithm>

#include "providers/opencl/driver/result.h"
#include "providers/opencl/modules/head.h"
#include "providers/opencl/modules/question.h"
#include "providers/opencl/modules/source.h"
#include "sdk/provider/modules/slots.h"
#include "sdk/provider/modules/source.h"
#include "sdk/provider/modules/store.h"

namespace tenon::provider::opencl {
namespace {

// Why the device cannot compile texts; OK if it can.
ep_status check_compiles(ep_device* device, ep_status status, ep_error** error) {
  const Toolchain& tools = device->compiler->toolchain();
  if (tools.sentence.empty()) return EP_STATUS_OK;
  return fail_text(device->host, error, status, tools.sentence, tools.remedy);
}

ep_status dialect_info(ep_device* device, uint32_t index, ep_dialect_info* out_info, ep_error** error) {
  if (index != 0) {
    return fail(device->host, error, EP_STATUS_NOT_FOUND, "opencl compiles one dialect; there is no dialect %u.",
                index);
  }
  if (const ep_status status = check_compiles(device, EP_STATUS_NOT_FOUND, error); status != EP_STATUS_OK)
    return status;
  fill(out_info, opencl_dialect(device->context->physical));
  return EP_STATUS_OK;
}

// One program that is being built.
struct Build {
  ep_device* device;
  const ep_module_desc& desc;
  const std::string& source;
  ep_error** error;
  std::unique_ptr<Program> program = nullptr;

  const Context& context() const { return *device->context; }
  std::string options() const {
    std::string options = device->programs->options();
    if (context().physical.f16) options += " -DEP_HAS_FLOAT16";
    return options;
  }
  // The question for the helper.
  std::string question() const {
    Asked asked{options(), {}, source};
    for (uint32_t i = 0; i < desc.entry_count; ++i) {
      const ep_module_entry& entry = desc.entries[i];
      AskedEntry& one = asked.entries.emplace_back();
      one.name = to_view(entry.name);
      one.buffers = buffers_of(entry);
      one.parameter_bytes = entry.parameter_bytes;
      one.by_reference = entry.parameter_bytes != 0 && by_reference(context().physical, desc, entry);
      one.faults = (entry.flags & EP_ENTRY_FLAG_FAULTS) != 0;
      one.words = launch_words(desc);
      std::copy(entry.group, entry.group + 3, one.group);
    }
    return text_of(asked);
  }
  // Creates the program from `binary`; returns the driver's result.
  cl_int from_binary(const std::string& binary) {
    const Api& api = context().api;
    const size_t bytes = binary.size();
    const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
    cl_int taken = CL_SUCCESS, made = CL_SUCCESS;
    cl_program handle =
        api.clCreateProgramWithBinary(context().handle(), 1, &context().physical.handle, &bytes, &data, &taken, &made);
    if (made != CL_SUCCESS) return made;
    program = std::make_unique<Program>(device->context, handle);
    const cl_int built = api.clBuildProgram(handle, 1, &context().physical.handle, options().c_str(), nullptr, nullptr);
    const cl_int result = taken != CL_SUCCESS ? taken : built;
    if (result != CL_SUCCESS) program.reset();
    return result;
  }
};

// Compiles the program, or finds a kept binary.
ep_status make_program(Build* build, uint64_t* out_bytes) {
  const ep_host* host = build->device->host;
  OpenclCompiler& compiler = *build->device->compiler;
  const std::string question = build->question();
  const std::string everything = compiler.everything_of(question);
  const std::string kept = kept_binary(host, everything);
  *out_bytes = kept.size();
  if (!kept.empty() && build->from_binary(kept) == CL_SUCCESS) {
    log_line(host, EP_LOG_DEBUG, "compile", "module %s: read from the cache", shown(build->desc.name).c_str());
    return EP_STATUS_OK;
  }
  const std::string& name = compiler.toolchain().name;
  const CompileResult compiled = compiler.compile(question);
  diagnose(build->desc, compiled.output);
  if (compiled.status == EP_STATUS_INVALID_ARGUMENT) {
    return refuse_text(host, build->desc, name, compiled.output, build->error);
  }
  if (compiled.status != EP_STATUS_OK) {
    return fail_text(host, build->error, compiled.status, compiled.sentence, compiled.remedy);
  }
  // The device may have been lost during compilation.
  if (const ep_status status = build->context().check(build->error); status != EP_STATUS_OK) return status;
  if (const cl_int result = build->from_binary(compiled.binary); result != CL_SUCCESS) {
    if (status_of(result) != EP_STATUS_INTERNAL) {
      return build->device->context->failed(build->error, "clBuildProgram", result);
    }
    return fail(host, build->error, EP_STATUS_UNSUPPORTED,
                "The driver answered %s (%d) for the compiled binary of the module '%s'.", result_name(result), result,
                shown(build->desc.name).c_str());
  }
  log_line(host, EP_LOG_DEBUG, "compile", "module %s: compiled by %s", shown(build->desc.name).c_str(), name.c_str());
  *out_bytes = compiled.binary.size();
  keep_binary(host, everything, compiled.binary);
  return EP_STATUS_OK;
}

// The largest group size with which the device can run `kernel`.
size_t most_items(const Context& context, const Kernel& kernel) {
  size_t most = 0;
  const cl_int result = context.api.clGetKernelWorkGroupInfo(kernel.handle(), context.physical.handle,
                                                             CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr);
  return result == CL_SUCCESS ? most : SIZE_MAX;
}

// The private memory of a work-item outside registers; 0 if the driver does not report it.
uint32_t private_bytes(const Context& context, const Kernel& kernel) {
  cl_ulong bytes = 0;
  const cl_int result = context.api.clGetKernelWorkGroupInfo(kernel.handle(), context.physical.handle,
                                                             CL_KERNEL_PRIVATE_MEM_SIZE, sizeof bytes, &bytes, nullptr);
  return result == CL_SUCCESS ? static_cast<uint32_t>(std::min<cl_ulong>(bytes, UINT32_MAX)) : 0;
}

ep_status make_kernel(Build* build, const ep_module_entry& entry, std::unique_ptr<ep_kernel>* out_kernel) {
  const ep_host* host = build->device->host;
  const Context& context = build->context();
  auto kernel = std::make_unique<ep_kernel>();
  kernel->host = host;
  kernel->name = to_view(entry.name);
  kernel->flags = entry.flags;
  kernel->buffer_count = entry.buffer_count;
  std::copy(entry.group, entry.group + 3, kernel->group);
  kernel->words = launch_words(build->desc);
  kernel->by_reference = entry.parameter_bytes != 0 && by_reference(context.physical, build->desc, entry);
  if (const Refusal why = build->program->kernel(kernel->name, &kernel->kernel)) {
    if (why.status() != EP_STATUS_INTERNAL) return fail_text(host, build->error, why.status(), why.text());
    return fail_text(host, build->error, EP_STATUS_INVALID_ARGUMENT,
                     fmt::format("The text of the module '{}' does not define the kernel {}.", shown(build->desc.name),
                                 kernel->name));
  }
  const size_t items = kernel->group[0] * kernel->group[1] * kernel->group[2];
  if (const size_t most = most_items(context, *kernel->kernel); items > most) {
    return fail(host, build->error, EP_STATUS_UNSUPPORTED,
                "The kernel %s has groups of %zu work-items; %s runs it in groups of %zu at most.",
                kernel->name.c_str(), items, context.physical.name.c_str(), most);
  }
  kernel->info.spilled_bytes = private_bytes(context, *kernel->kernel);
  *out_kernel = std::move(kernel);
  return EP_STATUS_OK;
}

ep_status module_create(ep_device* device, const ep_module_desc* desc, ep_module** out_module, ep_module_info* out_info,
                        ep_error** error) {
  const ep_host* host = device->host;
  const PhysicalDevice& physical = device->context->physical;
  if (const ep_status status = device->context->check(error); status != EP_STATUS_OK) return status;
  if (const ep_status status = check_module(host, *desc, opencl_dialect(physical), error); status != EP_STATUS_OK) {
    return status;
  }
  if (const ep_status status = check_compiles(device, EP_STATUS_UNSUPPORTED, error); status != EP_STATUS_OK) {
    return status;
  }
  std::string source;
  if (const std::string wrong = make_source(physical, *desc, &source); !wrong.empty()) {
    return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT,
                     fmt::format("The text of the module '{}' {}.", shown(desc->name), wrong));
  }
  Build build{device, *desc, source, error};
  uint64_t bytes = 0;
  if (const ep_status status = make_program(&build, &bytes); status != EP_STATUS_OK) return status;
  std::vector<std::unique_ptr<ep_kernel>> kernels(desc->entry_count);
  for (uint32_t i = 0; i < desc->entry_count; ++i) {
    const ep_status status = make_kernel(&build, desc->entries[i], &kernels[i]);
    if (status != EP_STATUS_OK) return status;
  }
  ep_module_info info{};
  info.host_bytes = bytes;
  *out_module = make<ep_module>(host, host, std::move(build.program), std::move(kernels));
  fill(out_info, info);
  return EP_STATUS_OK;
}

}  // namespace

void fill_modules(ep_device_ops* ops) { fill_module_slots<dialect_info, module_create, kernel_launch>(ops); }

}  // namespace tenon::provider::opencl
