// Arguments of the functions for kernel modules, by type (arguments.h).
#pragma once

#include <vector>

#include "loader/layers/validate/arguments.h"

namespace tenon::loader::validate {

// The description of a text. It holds no handles. The provider's report about the text passes through it, so that the
// layer can count the calls.
template <>
struct Argument<const ep_module_desc*> {
  Argument(Call& call, const ep_module_desc* given);
  const ep_module_desc* pass() {
    if (inner.diagnose != nullptr) {
      inner.diagnose = [](void* context, ep_string output) {
        auto& self = *static_cast<Argument*>(context);
        if (++self.diagnoses == 1) self.desc->diagnose(self.desc->context, output);
      };
      inner.context = this;
    }
    return &inner;
  }
  void after(Call& call, ep_status status) const;
  void end(bool) const {}

  const ep_module_desc* desc;
  ep_module_desc inner{};
  int diagnoses = 0;
};

template <>
struct Argument<ep_dialect_info*> : InfoArgument<ep_dialect_info, EP_STRUCT_DIALECT_INFO> {
  using InfoArgument::InfoArgument;
};
template <>
struct Argument<ep_module_info*> : InfoArgument<ep_module_info, EP_STRUCT_MODULE_INFO> {
  using InfoArgument::InfoArgument;
};
template <>
struct Argument<ep_kernel_info*> : InfoArgument<ep_kernel_info, EP_STRUCT_KERNEL_INFO> {
  using InfoArgument::InfoArgument;
};

// A launch of a kernel, with the provider's handles in it.
template <>
struct Argument<const ep_kernel_launch*> {
  Argument(Call& call, const ep_kernel_launch* given);
  const ep_kernel_launch* pass() {
    inner.buffers = buffers.empty() ? nullptr : buffers.data();
    return &inner;
  }
  void after(Call&, ep_status) const {}
  void end(bool) const {}

  ep_kernel_launch inner{};
  std::vector<ep_buffer> buffers;
  std::vector<Memory*> memories;  // null: no memory was given
  Memory* workspace = nullptr;
  Memory* scratch = nullptr;
};

}  // namespace tenon::loader::validate
