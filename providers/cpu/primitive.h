// ep_primitive: the base of every primitive of the cpu provider.
#pragma once

#include "providers/cpu/device.h"
#include "sdk/provider/primitive.h"

// One created primitive. Threads: several may launch it at once, so launch() changes only atomic members.
struct ep_primitive : tenon::provider::PrimitiveBase {
  virtual ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error** error) = 0;
  // Writes the packed form of the operand that primitive_create wants packed. Errors: INVALID_ARGUMENT if it wants
  // none.
  virtual ep_status pack(char* dst, const char* src, ep_error** error);
};
