// The base of every primitive of this provider.
#pragma once

#include "providers/cpu/device.h"
#include "sdk/provider/primitive.h"

// One created primitive. Launches may run on several threads at once: launch() changes nothing in it that is not
// atomic.
struct ep_primitive : tenon::provider::PrimitiveBase {
  virtual ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error** error) = 0;
  // Writes the operand that primitive_create asked for packed. INVALID_ARGUMENT: it asked for none.
  virtual ep_status pack(char* dst, const char* src, ep_error** error);
};
