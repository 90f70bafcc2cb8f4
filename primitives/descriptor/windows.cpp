// The windows of convolutions and poolings.
#include "primitives/descriptor/check.h"

namespace tenon::descriptor {

Status check_windows(const Desc& desc, const Windows& windows, const Operand& wide) {
  if (windows.spatial_rank < 1 || windows.spatial_rank > 3) {
    return wrong(desc, "spatial rank {} is not 1, 2 or 3.", windows.spatial_rank);
  }
  if (wide.rank != windows.spatial_rank + 2) {
    return wrong(desc, "'{}' has rank {} but must have {} (n, c, spatial).", table::role_name(wide.role), wide.rank,
                 windows.spatial_rank + 2);
  }
  for (int32_t i = 0; i < 3; ++i) {
    const bool used = i < windows.spatial_rank;
    const bool unused_zero = windows.stride[i] == 0 && windows.dilation[i] == 0;
    if (used ? windows.stride[i] < 1 || windows.dilation[i] < 1 : !unused_zero) {
      return wrong(desc, "stride {} and dilation {} of spatial axis {} must be at least 1 (0 beyond the spatial rank).",
                   windows.stride[i], windows.dilation[i], i);
    }
    if (windows.pad_low[i] < 0 || windows.pad_high[i] < 0) {
      return wrong(desc, "padding ({}, {}) must not be negative.", windows.pad_low[i], windows.pad_high[i]);
    }
  }
  return {};
}

Status check_window_lengths(const Desc& desc, const Windows& windows, const Operand& wide, const Operand& narrow,
                            const Operand& weight) {
  for (int32_t i = 0; i < windows.spatial_rank; ++i) {
    const int64_t d = wide.dims[i + 2];
    const int64_t e = narrow.dims[i + 2];
    const int64_t k = weight.dims[i + 2];
    if (d == EP_ANY || e == EP_ANY || k == EP_ANY) continue;
    const int64_t room = d + windows.pad_low[i] + windows.pad_high[i] - windows.dilation[i] * (k - 1) - 1;
    if (room >= 0 && room / windows.stride[i] + 1 == e) continue;
    return wrong(desc, "spatial axis {}: windows of {} over length {} of '{}' do not give length {} of '{}'.", i, k, d,
                 table::role_name(wide.role), e, table::role_name(narrow.role));
  }
  return {};
}

Status check_pooling_windows(const Desc& desc, const ep_pooling_attributes& at, const Operand& wide,
                             const Operand& narrow) {
  TENON_RETURN_IF_ERROR(check_windows(desc, {at.spatial_rank, at.stride, at.dilation, at.pad_low, at.pad_high}, wide));
  if (narrow.rank != wide.rank || !agree(wide.dims[0], narrow.dims[0]) || !agree(wide.dims[1], narrow.dims[1])) {
    return wrong(desc, "'{}' {} must have the first two dims of '{}' {}.", table::role_name(narrow.role),
                 dims_of(narrow), table::role_name(wide.role), dims_of(wide));
  }
  for (int32_t i = 0; i < 3; ++i) {
    if (i < at.spatial_rank ? at.kernel[i] < 1 : at.kernel[i] != 0) {
      return wrong(desc, "kernel {} of spatial axis {} must be at least 1 (0 beyond the spatial rank).", at.kernel[i],
                   i);
    }
    if (i >= at.spatial_rank || narrow.dims[i + 2] == EP_ANY || wide.dims[i + 2] == EP_ANY) continue;
    if ((narrow.dims[i + 2] - 1) * at.stride[i] >= wide.dims[i + 2] + at.pad_low[i]) {
      return wrong(desc, "the last window of spatial axis {} starts beyond '{}' {}.", i, table::role_name(wide.role),
                   dims_of(wide));
    }
  }
  return {};
}

}  // namespace tenon::descriptor
