// Scalars of a record that are expressions. Internal.
#pragma once

#include <cstdint>

namespace tenon {

// A Patch with this word or a greater one is for a launch scalar: kScalarPatch + 1 for scalar 1. The scalar keeps its
// dtype.
constexpr uint32_t kScalarPatch = 1u << 16;

}  // namespace tenon
