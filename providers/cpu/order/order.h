// Kinds that scan, sort or search elements.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

#define TENON_CPU_KIND(name)                                                                               \
  struct name {                                                                                            \
    static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info); \
    static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,              \
                        ep_primitive_info& info);                                                          \
  }
TENON_CPU_KIND(Scan);
TENON_CPU_KIND(Sort);
TENON_CPU_KIND(TopK);
TENON_CPU_KIND(Unique);
TENON_CPU_KIND(Nonzero);
TENON_CPU_KIND(OneHot);
#undef TENON_CPU_KIND

}  // namespace tenon::provider::cpu
