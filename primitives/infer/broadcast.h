// NumPy's broadcasting: shapes are aligned at their last axis; a dim of 1 (or a missing one) is repeated.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::infer {

Result<Dims> broadcast(std::string_view op, const Dims& a, const Dims& b);
Result<Dims> broadcast(std::string_view op, const Dims& a, const Dims& b, const Dims& c);
// Broadcasts any number of shapes. An empty list returns rank 0.
Result<Dims> broadcast(std::string_view op, std::span<const Dims> shapes);

// The strides that read a tensor of `dims` and `strides` as a tensor of `target`: 0 along repeated axes.
// `dims` must broadcast to `target`.
Dims broadcast_strides(const Dims& dims, const Dims& strides, const Dims& target);

// True if `dims` broadcasts to exactly `target`. In-place ops require it of their other arguments.
bool broadcasts_to(const Dims& dims, const Dims& target);

}  // namespace tenon::infer
