// ep_primitive: base class of all primitives of the cpu provider.
#pragma once

#include <memory>

#include "providers/cpu/device.h"
#include "sdk/provider/primitive.h"

// One created primitive. Threads: several may launch it at once, so launch() changes only atomic members.
struct ep_primitive : tenon::provider::PrimitiveBase {
  virtual ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error** error) = 0;
  // Packs the operand that primitive_create asked to pack. Errors: INVALID_ARGUMENT if it asked for none.
  virtual ep_status pack(char* dst, const char* src, ep_error** error);
};

namespace tenon::provider::cpu {

struct DestroyPrimitive {
  void operator()(ep_primitive* primitive) const { destroy_primitive(primitive); }
};
using OwnedPrimitive = std::unique_ptr<ep_primitive, DestroyPrimitive>;

}  // namespace tenon::provider::cpu
