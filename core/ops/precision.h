// Precision: how exact the ops of a program must be. A device states a tier of accuracy for each element type
// (ep_api/accuracy.def has the bounds). An op whose demand is above what its device states takes the next rung of the
// ladder, and the execution report says why.
#pragma once

#include <cstdint>

#include "core/device/export.h"
#include "ep_api/ep_api.h"

namespace tenon {

enum class Precision : uint8_t {
  stated = EP_PRECISION_DEFAULT,   // what the device states
  fast = EP_PRECISION_FAST,        // narrower formats inside will do, such as TF32 or bf16 for f32
  relaxed = EP_PRECISION_RELAXED,  // at least what OpenCL's full profile and Vulkan demand of a device
  full = EP_PRECISION_FULL,        // the bounds of our own CPU device, with denormal numbers kept
};

// What the ops of the calling thread demand.
TENON_API Precision current_precision();

// While it lives, the ops that its thread calls or records demand `precision`.
class TENON_API PrecisionScope {
 public:
  explicit PrecisionScope(Precision precision);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  Precision previous_;
};

}  // namespace tenon
