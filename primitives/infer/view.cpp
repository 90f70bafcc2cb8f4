#include "primitives/infer/view.h"

#include <algorithm>

#include "primitives/infer/axis.h"
#include "primitives/text/format.h"

namespace tenon::infer {
namespace {

template <class... Parts>
Status wrong(std::string_view op, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Code::invalid_argument, fmt::format("{}: {}", op, fmt::format(text, parts...)));
}

Status check_rank(std::string_view op, size_t rank) {
  if (rank <= EP_MAX_RANK) return {};
  return wrong(op, "rank {} is more than {}.", rank, EP_MAX_RANK);
}

}  // namespace

Result<Dims> reshape(std::string_view op, const Dims& dims, std::span<const int64_t> target) {
  TENON_RETURN_IF_ERROR(check_rank(op, target.size()));
  Dims result(target);
  int32_t open = -1;
  for (int32_t axis = 0; axis < result.rank(); ++axis) {
    if (result[axis] != -1) continue;
    if (open >= 0) return wrong(op, "only one dim of {} may be -1.", result);
    open = axis;
  }
  Dims known = result;
  if (open >= 0) known[open] = 1;
  TENON_RETURN_IF_ERROR(checked(op, known).status());
  const int64_t have = element_count(dims);
  const int64_t want = element_count(known);
  if (open >= 0) {
    if (want == 0) return wrong(op, "the -1 of {} can be any length, since another dim is 0.", result);
    if (have % want == 0) {
      result[open] = have / want;
      return result;
    }
  }
  if (open >= 0 || have != want) {
    return wrong(op, "shape {} does not fit the {} elements of shape {}.", Dims(target), have, dims);
  }
  return result;
}

std::optional<Dims> reshape_strides(const View& view, const Dims& target) {
  if (element_count(target) == 0) return contiguous_strides(target);
  Dims strides = Dims::filled(target.rank(), 1);
  int32_t to = target.rank() - 1;
  int64_t chunk = 1;  // elements of the source axes so far that are walked as one, `base` apart
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
  if (dims.empty()) return Dims{1};
  TENON_ASSIGN_OR_RETURN(const int32_t first, axis(op, start, dims.rank()));
  TENON_ASSIGN_OR_RETURN(const int32_t last, axis(op, end, dims.rank()));
  if (first > last)
    return wrong(op, "the start axis {} comes after the end axis {} for rank {}.", start, end, dims.rank());
  Dims result;
  for (int32_t i = 0; i < first; ++i) result.push_back(dims[i]);
  int64_t length = 1;
  for (int32_t i = first; i <= last; ++i) length *= dims[i];
  result.push_back(length);
  for (int32_t i = last + 1; i < dims.rank(); ++i) result.push_back(dims[i]);
  return result;
}

Result<View> permute(std::string_view op, const View& view, std::span<const int64_t> axes) {
  const int32_t rank = view.dims.rank();
  if (axes.size() != view.dims.size()) {
    return wrong(op, "expects one axis for each of shape {}, but got {}.", view.dims, axes.size());
  }
  if (rank == 0) return view;
  TENON_RETURN_IF_ERROR(axis_mask(op, axes, rank).status());
  View result = view;
  for (int32_t i = 0; i < rank; ++i) {
    const int64_t given = axes[static_cast<size_t>(i)];
    const int64_t from = given < 0 ? given + rank : given;
    result.dims[i] = view.dims[from];
    result.strides[i] = view.strides[from];
  }
  return result;
}

Result<View> transpose(std::string_view op, const View& view, int64_t axis_a, int64_t axis_b) {
  TENON_ASSIGN_OR_RETURN(const int32_t a, axis(op, axis_a, view.dims.rank()));
  TENON_ASSIGN_OR_RETURN(const int32_t b, axis(op, axis_b, view.dims.rank()));
  View result = view;
  if (view.dims.empty()) return result;
  std::swap(result.dims[a], result.dims[b]);
  std::swap(result.strides[a], result.strides[b]);
  return result;
}

Result<SliceRange> slice_range(std::string_view op, int64_t dim, int64_t start, int64_t stop, int64_t step) {
  if (step == 0) return wrong(op, "the step must not be 0.");
  const auto bound = [&](int64_t at) {
    if (at < 0) at += dim;
    return step > 0 ? std::clamp<int64_t>(at, 0, dim) : std::clamp<int64_t>(at, -1, dim - 1);
  };
  const int64_t first = bound(start);
  const int64_t last = bound(stop);
  const int64_t distance = step > 0 ? last - first : first - last;
  if (distance <= 0) return SliceRange{std::max<int64_t>(first, 0), 0, 1};
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : ~static_cast<uint64_t>(step) + 1;
  const auto length = static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride) + 1;
  return SliceRange{first, length, length == 1 ? 1 : step};
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
  const int64_t dim = view.dims[at];
  if (index < -dim || index >= dim) {
    return wrong(op, "index {} is out of range for axis {} of length {}.", index, at, dim);
  }
  View result = view;
  result.offset += (index < 0 ? index + dim : index) * view.strides[at];
  result.dims.erase(at);
  result.strides.erase(at);
  return result;
}

Result<View> expand(std::string_view op, const View& view, std::span<const int64_t> target) {
  TENON_RETURN_IF_ERROR(check_rank(op, target.size()));
  const auto shift = static_cast<int32_t>(target.size()) - view.dims.rank();
  if (shift < 0) {
    return wrong(op, "shape {} has more axes than the target {}.", view.dims, Dims(target));
  }
  View result = {Dims(target), Dims::filled(static_cast<int32_t>(target.size()), 0), view.offset};
  for (int32_t axis = 0; axis < result.dims.rank(); ++axis) {
    int64_t& dim = result.dims[axis];
    const int64_t have = axis < shift ? 1 : view.dims[axis - shift];
    if (dim == -1 && axis < shift) {
      return wrong(op, "-1 is not possible at axis {} of {}, which shape {} does not have.", axis, Dims(target),
                   view.dims);
    }
    if (dim == -1) dim = have;
    if (dim != have && have != 1) {
      return wrong(op, "shape {} does not expand to {}: only axes of length 1 repeat.", view.dims, Dims(target));
    }
    if (axis >= shift && dim == have) result.strides[axis] = view.strides[axis - shift];
  }
  TENON_RETURN_IF_ERROR(checked(op, result.dims).status());
  return result;
}

Result<View> squeeze(std::string_view op, const View& view, std::span<const int64_t> axes) {
  TENON_ASSIGN_OR_RETURN(const uint32_t mask, axis_mask(op, axes, view.dims.rank()));
  View result = {{}, {}, view.offset};
  for (int32_t axis = 0; axis < view.dims.rank(); ++axis) {
    if ((mask >> axis & 1) && view.dims[axis] == 1) continue;
    result.dims.push_back(view.dims[axis]);
    result.strides.push_back(view.strides[axis]);
  }
  return result;
}

Result<View> unsqueeze(std::string_view op, const View& view, std::span<const int64_t> axes) {
  const size_t rank = view.dims.size() + axes.size();
  TENON_RETURN_IF_ERROR(check_rank(op, rank));
  if (axes.empty()) return view;
  TENON_ASSIGN_OR_RETURN(const uint32_t mask, axis_mask(op, axes, static_cast<int32_t>(rank)));
  View result = {{}, {}, view.offset};
  int32_t from = 0;
  for (int32_t axis = 0; axis < static_cast<int32_t>(rank); ++axis) {
    const bool inserted = mask >> axis & 1;
    const int64_t inner = from < view.dims.rank() ? view.dims[from] * view.strides[from] : 1;
    result.dims.push_back(inserted ? 1 : view.dims[from]);
    result.strides.push_back(inserted ? std::max<int64_t>(inner, 1) : view.strides[from]);
    if (!inserted) ++from;
  }
  return result;
}

bool is_injective(const Dims& dims, const Dims& strides) {
  int32_t order[EP_MAX_RANK];  // axes longer than 1, the least stride first
  int32_t count = 0;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if (dims[axis] == 0) return true;
    if (dims[axis] == 1) continue;
    int32_t at = count++;
    for (; at > 0 && strides[order[at - 1]] > strides[axis]; --at) order[at] = order[at - 1];
    order[at] = axis;
  }
  int64_t reach = 0;  // the highest offset that the axes so far reach
  for (int32_t i = 0; i < count; ++i) {
    if (strides[order[i]] <= reach) return false;
    reach += (dims[order[i]] - 1) * strides[order[i]];
  }
  return true;
}

}  // namespace tenon::infer
