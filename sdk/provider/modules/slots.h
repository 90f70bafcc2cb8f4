// The slots of kernel modules that are the same for all devices.
//
//   fill_module_slots<dialect_info, module_create, kernel_launch>(ops);
//
// The provider's ep_module has the members `host` and `kernels` (pointers to its entries); its ep_kernel has `name` and
// `info`.
#pragma once

#include <string>

#include "sdk/provider/entry.h"
#include "sdk/provider/error.h"
#include "sdk/provider/handle.h"
#include "sdk/provider/modules/source.h"
#include "sdk/provider/negotiate.h"

namespace tenon::provider {

template <class Module, class Kernel>
ep_status find_kernel(Module* module, ep_string entry, Kernel** out_kernel, ep_kernel_info* out_info,
                      ep_error** error) {
  for (const auto& kernel : module->kernels) {
    if (kernel->name != to_view(entry)) continue;
    *out_kernel = kernel.get();
    fill(out_info, kernel->info);
    return EP_STATUS_OK;
  }
  const std::string sentence = "The module has no entry '" + shown(entry) + "'.";
  return fail_text(module->host, error, EP_STATUS_NOT_FOUND, sentence);
}

template <class Module>
void destroy_module(ep_device*, Module* module) noexcept {
  destroy(module);
}

template <auto dialect_info, auto module_create, auto kernel_launch>
void fill_module_slots(ep_device_ops* ops) {
  ops->dialect_info = entry<dialect_info>;
  ops->module_create = entry<module_create>;
  ops->module_destroy = destroy_module<ep_module>;
  ops->kernel_get = entry<find_kernel<ep_module, ep_kernel>>;
  ops->kernel_launch = entry<kernel_launch>;
}

}  // namespace tenon::provider
