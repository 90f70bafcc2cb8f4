// NumPy's broadcasting: shapes are aligned at their last axis, a dim of 1 (or a missing one) repeats.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::infer {

Result<Dims> broadcast(std::string_view op, const Dims& a, const Dims& b);
Result<Dims> broadcast(std::string_view op, const Dims& a, const Dims& b, const Dims& c);
// Broadcasts any number of shapes. No shapes give rank 0.
Result<Dims> broadcast(std::string_view op, std::span<const Dims> shapes);

// The strides with which a tensor of `dims` and `strides` is read as one of `target`: 0 along what repeats.
// `dims` must broadcast to `target` (broadcast gave it, or expand checked it).
Dims broadcast_strides(const Dims& dims, const Dims& strides, const Dims& target);

// True if `dims` broadcast to exactly `target`. An in-place op asks this of its other arguments.
bool broadcasts_to(const Dims& dims, const Dims& target);

}  // namespace tenon::infer
