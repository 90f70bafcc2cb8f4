#include "core/compile/strided.h"

#include <algorithm>
#include <vector>

#include "core/ops/ops.h"
#include "ep_api/ep_api.h"

namespace tenon::compilation {
namespace {

struct Axis {
  int32_t number = 0;  // index in the tensor
  int64_t dim = 0;
  int64_t stride = 0;
  int64_t start = 0;  // position of the first element, in steps of the stride
  int64_t room = 0;   // number of steps that fit
};

// The axes longer than 1 with a stride, from the greatest stride to the least.
std::vector<Axis> moving_axes(const Tensor& tensor) {
  std::vector<Axis> axes;
  for (int32_t i = 0; i < tensor.rank(); ++i) {
    if (tensor.dims()[i] != 1 && tensor.strides()[i] != 0) axes.push_back({i, tensor.dims()[i], tensor.strides()[i]});
  }
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
  return axes;
}

// Finds the start of each axis in `elements` elements, where the tensor's first element has the index `offset`. Returns
// false if the strides are not those of slices of a row-major tensor.
bool place(std::vector<Axis>* axes, int64_t elements, int64_t offset) {
  int64_t room = elements;  // number of elements in one step of the axis before
  for (Axis& axis : *axes) {
    const bool first = &axis == axes->data();
    if (axis.stride <= 0 || (!first && room % axis.stride != 0)) return false;
    axis.room = room / axis.stride;
    axis.start = offset / axis.stride;
    if (axis.start + axis.dim > axis.room) return false;
    offset %= axis.stride;
    room = axis.stride;
  }
  return true;
}

// The slice of `flat` with the moving axes, in the order of `axes`.
Tensor sliced(const Tensor& flat, const std::vector<Axis>& axes, int64_t offset) {
  const int64_t last = axes.back().stride;
  std::vector<int64_t> dims;
  for (const Axis& axis : axes) dims.push_back(axis.room);
  if (last != 1) dims.push_back(last);
  const int64_t used = axes.front().room * axes.front().stride;
  Tensor result = used == flat.elements() ? flat : slice(flat, 0, 0, used, 1);
  if (dims.size() != 1) result = reshape(result, dims);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].dim == axes[i].room) continue;
    result = slice(result, static_cast<int64_t>(i), axes[i].start, axes[i].start + axes[i].dim, 1);
  }
  return last == 1 ? result : select(result, static_cast<int64_t>(axes.size()), offset % last);
}

// Permutes the axes to the tensor's order and adds its axes of length 1 and its expanded axes.
Tensor ordered(Tensor view, const std::vector<Axis>& axes, const Tensor& tensor) {
  std::vector<int64_t> order(axes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return axes[static_cast<size_t>(a)].number < axes[static_cast<size_t>(b)].number;
  });
  if (!std::is_sorted(order.begin(), order.end())) view = permute(view, order);
  bool expanded = false;
  for (int32_t i = 0; i < tensor.rank(); ++i) {
    if (tensor.dims()[i] != 1 && tensor.strides()[i] != 0) continue;
    view = unsqueeze(view, i);
    expanded = expanded || tensor.dims()[i] != 1;
  }
  return expanded ? expand(view, tensor.dims()) : view;
}

}  // namespace

bool is_view_of(const Tensor& root, const Tensor& tensor) {
  const int64_t offset = tensor.impl()->offset - root.impl()->offset;
  if (!root.contiguous() || root.dtype() != tensor.dtype()) return false;
  if (tensor.elements() == 0 || offset < 0 || offset >= root.elements()) return false;
  std::vector<Axis> axes = moving_axes(tensor);
  const size_t rank = axes.size() + (axes.empty() || axes.back().stride == 1 ? 0 : 1);
  return rank <= EP_MAX_RANK && place(&axes, root.elements(), offset);
}

Tensor view_as(const Tensor& base, const Tensor& root, const Tensor& tensor) {
  const int64_t offset = tensor.impl()->offset - root.impl()->offset;
  std::vector<Axis> axes = moving_axes(tensor);
  place(&axes, root.elements(), offset);
  const Tensor flat = base.rank() == 1 ? base : reshape(base, {root.elements()});
  const Tensor view = axes.empty() ? select(flat, 0, offset) : sliced(flat, axes, offset);
  return ordered(view, axes, tensor);
}

}  // namespace tenon::compilation
