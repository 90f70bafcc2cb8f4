// EP_PRECISION_RELAXED on the CPU: products of f32 whose factors are rounded to bf16.
#pragma once

#include "providers/cpu/device.h"
#include "sdk/provider/implementation.h"

namespace tenon::provider::cpu {

// The reason why the factors of `desc` stay f32: the program does not permit tier relaxed, the result is not f32, or
// the processor has no products of bf16.
Refusal why_not_relaxed(const ep_device& device, const ep_primitive_desc& desc);

// `desc` with factors of bf16 instead of f32.
ep_primitive_desc with_rounded_factors(const ep_primitive_desc& desc);

}  // namespace tenon::provider::cpu
