// Reductions: sum, max, mean, arg-max over some axes.
#pragma once

#include <cstdint>
#include <string_view>

#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::infer {

// `dims` with the axes of bit mask `axes` (see axis_mask) gone, or 1 where `keep_dims`.
Dims reduce(const Dims& dims, uint32_t axes, bool keep_dims);

// Number of elements that meet in one result.
int64_t reduced_count(const Dims& dims, uint32_t axes);

// Refuses an empty reduction of an op that has no value for it (max, min, arg-max): an axis of length 0 is reduced.
Status require_elements(std::string_view op, const Dims& dims, uint32_t axes);

}  // namespace tenon::infer
