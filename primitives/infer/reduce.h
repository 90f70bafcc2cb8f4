// Reductions: sum, max, mean, arg-max over some axes.
#pragma once

#include <cstdint>
#include <string_view>

#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::infer {

// `dims` without the axes of bit mask `axes` (see axis_mask). With `keep_dims` they have length 1 instead.
Dims reduce(const Dims& dims, uint32_t axes, bool keep_dims);

// The number of elements that are reduced to one result.
int64_t reduced_count(const Dims& dims, uint32_t axes);

// Fails if a reduced axis has length 0. For ops whose result has no value then (max, min, arg-max).
Status require_elements(std::string_view op, const Dims& dims, uint32_t axes);

}  // namespace tenon::infer
