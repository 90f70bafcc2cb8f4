// The base of every primitive of the opencl provider.
#pragma once

#include "providers/opencl/device.h"
#include "sdk/provider/primitive.h"

// One created primitive. Threads: several may launch it at once, so launch() changes nothing in it.
struct ep_primitive : tenon::provider::PrimitiveBase {
  virtual ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const = 0;
};
