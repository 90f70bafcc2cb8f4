#include "providers/vulkan/modules/modules.h"

#include <fmt/core.h>

#include "providers/vulkan/modules/spirv.h"
#include "sdk/provider/modules/slots.h"
#include "sdk/provider/modules/source.h"
#include "sdk/provider/modules/store.h"

namespace tenon::provider::vulkan {
namespace {

// Why the device cannot compile texts; OK if it can.
ep_status check_compiles(ep_device* device, ep_status status, ep_error** error) {
  if (!device->context->physical->features.int64) {
    return fail(device->host, error, status, "%s has no 64-bit integers (shaderInt64), which buffer addresses need.",
                device->context->physical->name.c_str());
  }
  const Toolchain& tools = device->compiler->toolchain();
  if (tools.sentence.empty()) return EP_STATUS_OK;
  return fail_text(device->host, error, status, tools.sentence, tools.remedy);
}

ep_status dialect_info(ep_device* device, uint32_t index, ep_dialect_info* out_info, ep_error** error) {
  if (index != 0) {
    return fail(device->host, error, EP_STATUS_NOT_FOUND, "vulkan compiles one dialect; there is no dialect %u.",
                index);
  }
  if (const ep_status status = check_compiles(device, EP_STATUS_NOT_FOUND, error); status != EP_STATUS_OK)
    return status;
  ep_dialect_info info = glsl_dialect(*device->context);
  info.compiler = to_ep_string(device->compiler->toolchain().name);
  fill(out_info, info);
  return EP_STATUS_OK;
}

// Compiles `source`, or finds a kept result.
ep_status make_words(ep_device* device, const ep_module_desc& desc, const std::string& source,
                     std::vector<uint32_t>* out_words, ep_error** error) {
  const ep_host* host = device->host;
  const std::string everything = device->compiler->everything_of(source);
  *out_words = spirv_words(kept_binary(host, everything));
  if (!out_words->empty()) {
    log_line(host, EP_LOG_DEBUG, "compile", "module %s: read from the cache", shown(desc.name).c_str());
    return EP_STATUS_OK;
  }
  const CompileResult compiled = device->compiler->compile(source);
  const std::string& compiler = device->compiler->toolchain().name;
  diagnose(desc, compiled.output);
  if (compiled.status == EP_STATUS_INVALID_ARGUMENT) return refuse_text(host, desc, compiler, compiled.output, error);
  if (compiled.status != EP_STATUS_OK) {
    return fail_text(host, error, compiled.status, compiled.sentence, compiled.remedy);
  }
  // The device may have been lost during compilation.
  if (const ep_status status = device->context->check(error); status != EP_STATUS_OK) return status;
  *out_words = spirv_words(compiled.binary);
  if (out_words->empty()) {
    return fail(host, error, EP_STATUS_UNSUPPORTED, "The output of %s for the module '%s' is not valid SPIR-V.",
                compiler.c_str(), shown(desc.name).c_str());
  }
  log_line(host, EP_LOG_DEBUG, "compile", "module %s: compiled by %s", shown(desc.name).c_str(), compiler.c_str());
  keep_binary(host, everything, compiled.binary);
  return EP_STATUS_OK;
}

ep_status module_create(ep_device* device, const ep_module_desc* desc, ep_module** out_module, ep_module_info* out_info,
                        ep_error** error) {
  const ep_host* host = device->host;
  const Context& context = *device->context;
  if (const ep_status status = context.check(error); status != EP_STATUS_OK) return status;
  if (const ep_status status = check_module(host, *desc, glsl_dialect(context), error); status != EP_STATUS_OK) {
    return status;
  }
  if (const ep_status status = check_compiles(device, EP_STATUS_UNSUPPORTED, error); status != EP_STATUS_OK) {
    return status;
  }
  std::vector<uint32_t> words;
  const ep_status compiled = make_words(device, *desc, source_of(context, *desc), &words, error);
  if (compiled != EP_STATUS_OK) return compiled;
  auto kernel = std::make_unique<ep_kernel>();
  if (const Refusal why = device->pipelines->make(without_contraction(words), nullptr, &kernel->pipeline)) {
    const ep_status status = why.status() == EP_STATUS_INTERNAL ? EP_STATUS_UNSUPPORTED : why.status();
    return fail_text(host, error, status,
                     fmt::format("The driver of {} cannot make a kernel of the module '{}': {}.",
                                 context.physical->name, shown(desc->name), why.text()));
  }
  const ep_module_entry& entry = desc->entries[0];
  kernel->name = to_view(entry.name);
  kernel->flags = entry.flags;
  kernel->buffer_count = entry.buffer_count;
  kernel->words = words_of(entry);
  kernel->placement = placement_of(entry);
  kernel->host = host;
  ep_module_info info{};
  info.host_bytes = words.size() * sizeof words[0];
  std::vector<std::unique_ptr<ep_kernel>> kernels;
  kernels.push_back(std::move(kernel));
  *out_module = make<ep_module>(host, host, std::move(kernels));
  fill(out_info, info);
  return EP_STATUS_OK;
}

}  // namespace

void fill_modules(ep_device_ops* ops) { fill_module_slots<dialect_info, module_create, kernel_launch>(ops); }

}  // namespace tenon::provider::vulkan
