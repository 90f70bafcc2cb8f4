// Views: reshaped tensors, parts of tensors, and replaced parts.
#include <algorithm>

#include "core/ops/attributes.h"
#include "sdk/onnx/exporter/operators.h"

namespace tenon::onnx {
namespace {

constexpr int64_t kEnd = SymDim::kMost;  // beyond every axis

int64_t axis_of(const NodeWriter& n, int64_t axis) { return axis < 0 ? axis + n.rank() : axis; }

// Writes the shape input of Reshape: 0 keeps the size of the same axis, -1 is computed.
void reshape(NodeWriter& n) {
  const SymDims from = n.dims(n.input(0)), to = n.dims(n.result());
  const bool empty = std::any_of(to.begin(), to.end(), [](SymDim dim) { return dim.is_number() && dim.number() == 0; });
  std::vector<int64_t> numbers;
  int64_t open = 0;
  for (int32_t axis = 0; axis < to.rank(); ++axis) {
    const bool kept = axis < from.rank() && identical(from[axis], to[axis]);
    numbers.push_back(to[axis].is_number() ? to[axis].number() : kept ? 0 : -1);
    open += numbers.back() == -1 ? 1 : 0;
  }
  if (open > 1 || empty) return n.give(n.add("Reshape", {n.in(0), n.model().shape(to)}, {{"allowzero", int64_t{1}}}));
  n.give(n.add("Reshape", {n.in(0), n.model().integers(numbers)}));
}

void permute(NodeWriter& n) {
  std::vector<int64_t> order;
  for (const int64_t axis : n.attributes<PermuteAttributes>().axes.span()) order.push_back(axis_of(n, axis));
  n.give(n.add("Transpose", {n.in(0)}, {{"perm", order}}));
}

// The record lists axes that are removed only if their size is 1; an empty list means all axes.
void squeeze(NodeWriter& n) {
  const SymDims dims = n.dims(n.input(0));
  const auto named = n.attributes<AxesAttributes>().axes.span();
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < n.rank(); ++axis) {
    const auto names = [&](int64_t each) { return axis_of(n, each) == axis; };
    const bool wanted = named.empty() || std::any_of(named.begin(), named.end(), names);
    if (wanted && dims[axis].is_number() && dims[axis].number() == 1) axes.push_back(axis);
  }
  n.give(axes.empty() ? n.in(0) : n.add("Squeeze", {n.in(0), n.model().integers(axes)}));
}

void unsqueeze(NodeWriter& n) {
  const auto axes = n.attributes<AxesAttributes>().axes.span();
  n.give(n.add("Unsqueeze", {n.in(0), n.model().integers({axes.begin(), axes.end()})}));
}

void expand(NodeWriter& n) {
  const SymDims from = n.dims(n.input(0));
  SymDims to = n.dims(n.result());
  for (int32_t axis = 0; axis < from.rank(); ++axis) {
    SymDim& size = to[to.rank() - from.rank() + axis];
    if (identical(size, from[axis])) size = 1;  // Expand keeps the longer size
  }
  n.give(n.add("Expand", {n.in(0), n.model().shape(to)}));
}

std::string sliced(NodeWriter& n, const std::string& x, int64_t axis, SymDim start, SymDim end, int64_t step = 1) {
  return n.add("Slice",
               {x, n.model().size(start), n.model().size(end), n.model().integers({axis}), n.model().integers({step})});
}

void slice(NodeWriter& n) {
  const auto& at = n.attributes<SliceAttributes>();
  n.give(sliced(n, n.in(0), at.axis, n.size_of(at.start), n.size_of(at.end), at.step));
}

void select(NodeWriter& n) {
  const auto& at = n.attributes<SelectAttributes>();
  const int64_t axis = axis_of(n, at.axis);
  const SymDim index = n.size_of(at.index);
  if (index.is_number()) {
    n.give(n.add("Gather", {n.in(0), n.model().integer(index.number())}, {{"axis", axis}}));
  } else {
    const std::string taken = n.add("Gather", {n.in(0), n.model().size(index)}, {{"axis", axis}});
    n.give(n.add("Squeeze", {taken, n.model().integers({axis})}));
  }
}

// Puts `part` between the elements before `start` and those from `end` on.
std::string replaced(NodeWriter& n, const std::string& part, int64_t axis, SymDim start, SymDim end) {
  const std::string before = sliced(n, n.in(0), axis, 0, start);
  const std::string behind = sliced(n, n.in(0), axis, end, kEnd);
  return n.add("Concat", {before, part, behind}, {{"axis", axis}});
}

void slice_scatter(NodeWriter& n) {
  const auto& at = n.attributes<SliceAttributes>();
  const SymDim start = n.size_of(at.start), end = n.size_of(at.end);
  const SymDims part = n.dims(n.input(1));
  if (part[at.axis].is_number() && part[at.axis].number() == 0) return n.give(n.in(0));
  if (at.step == 1) return n.give(replaced(n, n.in(1), at.axis, start, end));
  const std::string count = n.add("Squeeze", {n.model().size(n.input(0).dims[at.axis]), n.model().integers({0})});
  const std::string all = n.add("Range", {n.model().integer(0), count, n.model().integer(1)});
  std::vector<int64_t> column(static_cast<size_t>(n.rank() - at.axis), 1);
  column[0] = -1;
  const std::string index = n.add("Reshape", {sliced(n, all, 0, start, end, at.step), n.model().integers(column)});
  const std::string wide = n.add("Expand", {index, n.model().shape(part)});
  n.give(n.add("ScatterElements", {n.in(0), wide, n.in(1)}, {{"axis", int64_t{at.axis}}}));
}

void select_scatter(NodeWriter& n) {
  const auto& at = n.attributes<SelectAttributes>();
  const int64_t axis = axis_of(n, at.axis);
  const int64_t index = n.number_of(at.index);
  const std::string part = n.add("Unsqueeze", {n.in(1), n.model().integers({axis})});
  // -1 is the last element, so nothing follows it.
  n.give(replaced(n, part, axis, index, index == -1 ? kEnd : index + 1));
}

constexpr OperatorRow kViewsRows[] = {
    {.op = "expand", .onnx = "Expand", .write = expand},
    {.op = "permute", .onnx = "Transpose", .write = permute},
    {.op = "reshape", .onnx = "Reshape", .write = reshape},
    {.op = "select", .onnx = "Gather", .write = select},
    {.op = "select_scatter", .onnx = "Concat", .write = select_scatter},
    {.op = "slice", .onnx = "Slice", .write = slice},
    {.op = "slice_scatter", .onnx = "Concat", .write = slice_scatter},
    {.op = "squeeze", .onnx = "Squeeze", .write = squeeze},
    {.op = "unsqueeze", .onnx = "Unsqueeze", .write = unsqueeze},
    {.op = "view", .onnx = "Reshape", .write = reshape},
};

}  // namespace

std::span<const OperatorRow> view_rows() { return kViewsRows; }

}  // namespace tenon::onnx
