#include "primitives/infer/view.h"

#include <algorithm>

#include "primitives/infer/view-inl.h"

namespace tenon::infer {
Result<Dims> reshape(std::string_view op, const Dims& dims, std::span<const int64_t> target) {
  return reshape<int64_t>(op, dims, target);
}

std::optional<Dims> reshape_strides(const View& view, const Dims& target) {
  if (element_count(target) == 0) return contiguous_strides(target);
  Dims strides = Dims::filled(target.rank(), 1);
  int32_t to = target.rank() - 1;
  int64_t chunk = 1;  // elements of the merged source axes so far; the distance between them is `base`
  int64_t base = view.dims.empty() ? 1 : view.strides.back();
  for (int32_t axis = view.dims.rank() - 1; axis >= 0; --axis) {
    chunk *= view.dims[axis];
    if (axis > 0 && (view.dims[axis - 1] == 1 || view.strides[axis - 1] == chunk * base)) continue;
    int64_t filled = 1;
    while (to >= 0 && (filled < chunk || target[to] == 1)) {
      strides[to] = filled * base;
      filled *= target[to--];
    }
    if (filled != chunk) return std::nullopt;
    if (axis > 0) base = view.strides[axis - 1];
    chunk = 1;
  }
  return strides;
}

Result<Dims> flatten(std::string_view op, const Dims& dims, int64_t start, int64_t end) {
  return flatten<int64_t>(op, dims, start, end);
}

Result<SliceRange> slice_range(std::string_view op, int64_t dim, int64_t start, int64_t stop, int64_t step) {
  return slice_range<int64_t>(op, dim, start, stop, step);
}

View slice(const View& view, int32_t axis, const SliceRange& range) {
  View result = view;
  result.dims[axis] = range.length;
  result.strides[axis] = range.length > 1 ? view.strides[axis] * range.step : view.strides[axis];
  if (range.length > 0) result.offset += range.start * view.strides[axis];
  return result;
}

Result<View> select(std::string_view op, const View& view, int64_t given_axis, int64_t index) {
  if (view.dims.empty()) return wrong(op, "a tensor of rank 0 has no axis to select from.");
  TENON_ASSIGN_OR_RETURN(const int32_t at, axis(op, given_axis, view.dims.rank()));
  TENON_ASSIGN_OR_RETURN(const int64_t position, selected<int64_t>(op, view.dims[at], at, index));
  View result = view;
  result.offset += position * view.strides[at];
  result.dims.erase(at);
  result.strides.erase(at);
  return result;
}

Result<View> squeeze(std::string_view op, const View& view, std::span<const int64_t> axes) {
  TENON_ASSIGN_OR_RETURN(const uint32_t gone, squeezed(op, view.dims, axes));
  return View{without(view.dims, gone), without(view.strides, gone), view.offset};
}

Result<uint32_t> unsqueezed(std::string_view op, int32_t rank, std::span<const int64_t> axes) {
  const size_t longer = static_cast<size_t>(rank) + axes.size();
  TENON_RETURN_IF_ERROR(check_rank(op, longer));
  if (axes.empty()) return uint32_t{0};
  return axis_mask(op, axes, static_cast<int32_t>(longer));
}

Result<View> unsqueeze(std::string_view op, const View& view, std::span<const int64_t> axes) {
  TENON_ASSIGN_OR_RETURN(const uint32_t mask, unsqueezed(op, view.dims.rank(), axes));
  View result = {with_ones(view.dims, mask), {}, view.offset};
  int32_t from = 0;
  for (int32_t axis = 0; axis < result.dims.rank(); ++axis) {
    const bool inserted = mask >> axis & 1;
    const int64_t inner = from < view.dims.rank() ? view.dims[from] * view.strides[from] : 1;
    result.strides.push_back(inserted ? std::max<int64_t>(inner, 1) : view.strides[from]);
    if (!inserted) ++from;
  }
  return result;
}

bool is_injective(const Dims& dims, const Dims& strides) {
  int32_t order[EP_MAX_RANK];  // axes longer than 1, by increasing stride
  int32_t count = 0;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if (dims[axis] == 0) return true;
    if (dims[axis] == 1) continue;
    int32_t at = count++;
    for (; at > 0 && strides[order[at - 1]] > strides[axis]; --at) order[at] = order[at - 1];
    order[at] = axis;
  }
  int64_t reach = 0;  // the greatest offset along the axes so far
  for (int32_t i = 0; i < count; ++i) {
    if (strides[order[i]] <= reach) return false;
    reach += (dims[order[i]] - 1) * strides[order[i]];
  }
  return true;
}

}  // namespace tenon::infer
