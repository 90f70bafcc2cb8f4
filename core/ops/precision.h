// Precision: how accurate the ops of a program must be. A device states a tier of accuracy for each element type
// (ep_api/accuracy.def has the bounds). If an op demands more than its device states, it takes the next rung of the
// ladder, and the execution report says why.
#pragma once

#include <cstdint>

#include "core/device/export.h"
#include "ep_api/ep_api.h"

namespace tenon {

enum class Precision : uint8_t {
  stated = EP_PRECISION_DEFAULT,   // the tier that the device states
  fast = EP_PRECISION_FAST,        // narrower formats are allowed inside, such as TF32 or bf16 for f32
  relaxed = EP_PRECISION_RELAXED,  // at least the accuracy that OpenCL's full profile and Vulkan require
  full = EP_PRECISION_FULL,        // the bounds of Tenon's CPU device, with denormal numbers kept
};

// The precision that ops of the calling thread demand.
TENON_API Precision current_precision();

// While this object lives, the ops that its thread calls or records demand `precision`.
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
