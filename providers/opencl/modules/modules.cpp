#include "providers/opencl/modules/modules.h"

#include <fmt/core.h>

#include <algorithm>

#include "providers/opencl/driver/result.h"
#include "providers/opencl/modules/source.h"
#include "sdk/provider/modules/slots.h"
#include "sdk/provider/modules/source.h"
#include "sdk/provider/modules/store.h"

namespace tenon::provider::opencl {
namespace {

ep_status dialect_info(ep_device* device, uint32_t index, ep_dialect_info* out_info, ep_error** error) {
  if (index != 0) {
    return fail(device->host, error, EP_STATUS_NOT_FOUND, "opencl compiles one dialect; there is no %u.", index);
  }
  fill(out_info, opencl_dialect(device->context->physical));
  return EP_STATUS_OK;
}

// One program on its way.
struct Build {
  ep_device* device;
  const ep_module_desc& desc;
  const std::string& source;
  ep_error** error;
  std::unique_ptr<Program> program = nullptr;
  std::string log = {};

  const Context& context() const { return *device->context; }
  // Has the driver make code of `handle`, or `made` says why there is no program.
  cl_int build(cl_program handle, cl_int made) {
    if (made != CL_SUCCESS) return made;
    program = std::make_unique<Program>(device->context, handle);
    std::string options = device->programs->options();
    if (context().physical.f16) options += " -DEP_HAS_FLOAT16";
    const cl_int result =
        context().api.clBuildProgram(handle, 1, &context().physical.handle, options.c_str(), nullptr, nullptr);
    log = device->programs->log_of(handle);
    return result;
  }
  // Whether the driver takes `binary` back.
  bool from_binary(const std::string& binary) {
    const size_t bytes = binary.size();
    const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
    cl_int taken = CL_SUCCESS, made = CL_SUCCESS;
    cl_program handle = context().api.clCreateProgramWithBinary(context().handle(), 1, &context().physical.handle,
                                                                &bytes, &data, &taken, &made);
    const bool built = build(handle, made) == CL_SUCCESS && taken == CL_SUCCESS;
    if (!built) program.reset();
    return built;
  }
  ep_status from_source() {
    const char* text = source.c_str();
    cl_int made = CL_SUCCESS;
    cl_program handle = context().api.clCreateProgramWithSource(context().handle(), 1, &text, nullptr, &made);
    const cl_int result = build(handle, made);
    diagnose(desc, log);
    if (result == CL_SUCCESS) return EP_STATUS_OK;
    // A compiler that finds fault with the text says "error" and where; one that finds the disk full does not.
    if (result == CL_BUILD_PROGRAM_FAILURE && log.find("error") != std::string::npos) {
      return refuse_text(device->host, desc, context().physical.compiler, log, error);
    }
    if (result == CL_BUILD_PROGRAM_FAILURE) {
      return fail_text(device->host, error, EP_STATUS_UNSUPPORTED,
                       fmt::format("The compiler ({}) failed on the module '{}', and names no error of its text: {}",
                                   context().physical.compiler, shown(desc.name), log.substr(0, 256)));
    }
    const ep_status status = status_of(result);
    return fail(device->host, error, status == EP_STATUS_INTERNAL ? EP_STATUS_UNSUPPORTED : status,
                "The compiler (%s) failed with %s (%d) on the module '%s'.", context().physical.compiler.c_str(),
                result_name(result), result, shown(desc.name).c_str());
  }
  std::string binary() const {
    const Api& api = context().api;
    size_t bytes = 0;
    if (api.clGetProgramInfo(program->handle(), CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) {
      return {};
    }
    std::string made(bytes, '\0');
    char* data = made.data();
    if (bytes == 0 ||
        api.clGetProgramInfo(program->handle(), CL_PROGRAM_BINARIES, sizeof data, &data, nullptr) != CL_SUCCESS) {
      return {};
    }
    return made;
  }
};

// Compiles, or finds what was kept.
ep_status make_program(Build* build, uint64_t* out_bytes) {
  const ep_host* host = build->device->host;
  const PhysicalDevice& physical = build->context().physical;
  const std::string everything = fmt::format("{}\n{}\n{}\n{}", physical.fingerprint, physical.compiler,
                                             build->device->programs->options(), build->source);
  const std::string kept = kept_binary(host, everything);
  *out_bytes = kept.size();
  if (!kept.empty() && build->from_binary(kept)) {
    log_line(host, EP_LOG_DEBUG, "compile", "module %s: kept from an earlier time", shown(build->desc.name).c_str());
    return EP_STATUS_OK;
  }
  if (wants_to_stop(host)) return fail_text(host, build->error, EP_STATUS_CANCELLED, "The host wanted to stop.");
  if (const ep_status status = build->from_source(); status != EP_STATUS_OK) return status;
  log_line(host, EP_LOG_DEBUG, "compile", "module %s: compiled by %s", shown(build->desc.name).c_str(),
           physical.compiler.c_str());
  const std::string made = build->binary();
  *out_bytes = made.size();
  if (!made.empty()) keep_binary(host, everything, made);
  return EP_STATUS_OK;
}

// The largest group in which the device runs `kernel`.
size_t most_items(const Context& context, const Kernel& kernel) {
  size_t most = 0;
  const cl_int result = context.api.clGetKernelWorkGroupInfo(kernel.handle(), context.physical.handle,
                                                             CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr);
  return result == CL_SUCCESS ? most : SIZE_MAX;
}

// The private memory of a work-item that is in no register; 0: the driver does not say.
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
