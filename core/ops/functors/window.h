// Parses strides, dilations and paddings of sliding windows from the forms that users pass.
#pragma once

#include <string_view>

#include "core/tensor/int_list.h"
#include "core/tensor/tensor.h"

namespace tenon::window {

constexpr int32_t kMaxSpatialRank = 3;

// The number of spatial axes of an input [n, c, d..].
int32_t spatial_rank(std::string_view op, const Tensor& input);
// Like spatial_rank above, for a convolution. Its weight must have as many spatial axes.
int32_t spatial_rank(std::string_view op, const Tensor& input, const Tensor& weight);

// Reads one number for all axes, or one per axis.
void per_axis(std::string_view op, std::string_view name, IntList list, int32_t spatial, int64_t* values);
// Reads one number, one per axis for both ends, or all low ends and then all high ends.
void padding(std::string_view op, IntList list, int32_t spatial, int64_t* low, int64_t* high);

}  // namespace tenon::window
