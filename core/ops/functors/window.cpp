#include "core/ops/functors/window.h"

#include "core/ops/functors/apply.h"
#include "primitives/text/format.h"

namespace tenon::window {

using functors::refuse;

int32_t spatial_rank(std::string_view op, const Tensor& input) {
  const int32_t spatial = input.rank() - 2;
  if (spatial < 1 || spatial > kMaxSpatialRank) {
    refuse(op, "input of shape {} has no batch, channels and one to {} spatial axes.", input.dims(), kMaxSpatialRank);
  }
  return spatial;
}

int32_t spatial_rank(std::string_view op, const Tensor& input, const Tensor& weight) {
  const int32_t spatial = spatial_rank(op, input);
  if (weight.rank() != input.rank()) {
    refuse(op, "weight of shape {} has another rank than input of shape {}.", weight.dims(), input.dims());
  }
  return spatial;
}

void per_axis(std::string_view op, std::string_view name, IntList list, int32_t spatial, int64_t* values) {
  if (list.size() != 1 && list.size() != static_cast<size_t>(spatial)) {
    refuse(op, "{} has {} numbers; it needs 1 or {}.", name, list.size(), spatial);
  }
  for (int32_t i = 0; i < spatial; ++i) values[i] = list[list.size() == 1 ? 0 : static_cast<size_t>(i)];
}

void padding(std::string_view op, IntList list, int32_t spatial, int64_t* low, int64_t* high) {
  const auto axes = static_cast<size_t>(spatial);
  if (list.size() == 2 * axes) {
    for (size_t i = 0; i < axes; ++i) {
      low[i] = list[i];
      high[i] = list[axes + i];
    }
    return;
  }
  per_axis(op, "padding", list, spatial, low);
  per_axis(op, "padding", list, spatial, high);
}

}  // namespace tenon::window
