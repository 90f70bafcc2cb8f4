// Precision: how accurate the ops of a program must be. A device states a tier of accuracy for each element type
// (ep_api/accuracy.def has the bounds). If an op demands more than its device states, it takes the next rung of the
// ladder, and the execution report says why. `relaxed` is a permission: a device that can compute products of f32 from
// factors rounded to bf16 or TF32 does so, with sums in f32, and any other device computes as it does without it. The
// tier in the execution report tells which calls made use of it.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/device/export.h"
#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon {

enum class Precision : uint8_t {
  stated = EP_PRECISION_DEFAULT,     // the tier that the device states, or the setting TENON_PRECISION
  relaxed = EP_PRECISION_RELAXED,    // products of f32 may round their factors to bf16 or TF32
  portable = EP_PRECISION_PORTABLE,  // at least the accuracy that OpenCL's full profile and Vulkan require
  full = EP_PRECISION_FULL,          // the bounds of Tenon's CPU device, with denormal numbers kept
};

inline constexpr Precision precisions[] = {Precision::stated, Precision::relaxed, Precision::portable, Precision::full};

// "stated", "relaxed", "portable", "full"
TENON_API std::string_view precision_name(Precision precision);
// Errors: invalid_argument, with the four names.
TENON_API Result<Precision> precision_from_name(std::string_view name);

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
