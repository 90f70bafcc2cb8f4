// Decides if a product and its epilogues are faster as separate primitives than `plain` is with both.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// The reason why the host should separate the epilogues of `desc` from the product: an implementation other than
// `plain` supports the product alone. Empty without epilogues. Pure.
Refusal why_not_together(const ep_device& device, const ep_primitive_desc& desc);

}  // namespace tenon::provider::cpu
