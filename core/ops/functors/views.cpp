// Views: other shapes and strides over the same storage.
#include "core/ops/functors/apply.h"
#include "core/ops/functors/sized.h"
#include "core/ops/sized_ops.h"
#include "core/tensor/recording.h"
#include "primitives/infer/view-inl.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

infer::View layout(const Tensor& tensor) { return {tensor.dims(), tensor.strides(), 0}; }

ShapeAttributes shape_attributes(std::string_view op, IntList list) {
  const Dims dims = dims_of(op, list);
  ShapeAttributes attributes{};
  attributes.dims = DimsAttribute::of({dims.data(), dims.size()});
  return attributes;
}

AxesAttributes axes_attributes(std::string_view op, IntList list) {
  AxesAttributes attributes{};
  attributes.axes = shape_attributes(op, list).dims;
  return attributes;
}

Tensor viewed(const Tensor& input, const Dims& dims, OpId id = OpId::reshape) {
  const ShapeAttributes attributes = shape_attributes(op_row(id).name, dims);
  return apply(id, input, &attributes);
}

// The common case: `input` is row-major, and `shape`, with one -1 if kOpen, has as many elements. False: not this case.
template <bool kOpen>
[[gnu::always_inline]] inline bool row_major_shape(const Tensor& input, IntList list, ShapeAttributes* attributes) {
  if (!input.defined() || list.sizes() != nullptr) return false;
  const TensorImpl& impl = *input.impl();
  const std::span<const int64_t> shape = list;
  if (impl.open || !impl.contiguous || shape.size() > EP_MAX_RANK) return false;
  int64_t count = 1;
  int64_t* open = nullptr;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t dim = shape[i];
    attributes->dims.values[i] = dim;
    if (kOpen && dim == -1 && open == nullptr) {
      open = &attributes->dims.values[i];
    } else if (dim < 1 || __builtin_mul_overflow(count, dim, &count)) {
      return false;
    }
  }
  attributes->dims.rank = static_cast<int64_t>(shape.size());
  if (!kOpen) return count == impl.elements;
  if (open == nullptr || impl.elements == 0) return false;
  *open = impl.elements / count;
  return count * *open == impl.elements;
}

// `input` viewed as `target`, with equally many elements, using the layout of `input` at the hints.
Tensor viewed_open(OpId id, const Tensor& input, const SymDims& target) {
  Dims hints;
  for (const SymDim dim : target) hints.push_back(hint_of(dim));
  const TensorImpl& impl = *input.impl();
  const bool copies = !impl.contiguous && !infer::reshape_strides({impl.dims, impl.strides, 0}, hints);
  if (copies && id == OpId::view) {
    throw Error(Subject{"view"}, Code::invalid_argument,
                fmt::format("a tensor of shape {} and strides {} cannot be seen as shape {} without a copy.", impl.dims,
                            impl.strides, hints),
                "Use reshape(), which copies where it must.");
  }
  const Tensor source = copies ? tenon::contiguous(input) : input;
  Sized<ShapeAttributes> sized;
  sized.set(&sized.attributes.dims, target);
  const Tensor result = apply(id, {&source}, sized);
  note_layout(input, result);
  return result;
}

Tensor reshape_open(OpId id, const Tensor& input, IntList shape) {
  const std::string_view op = op_row(id).name;
  require_defined(op, "input", input);
  const SymDims asked = sym_dims_of(op, shape);
  return viewed_open(id, input, value_or_throw(infer::reshape<SymDim>(op, sizes(input), asked)));
}

bool among_open(const Tensor& input, IntList list) { return (input.defined() && is_open(input)) || is_open(list); }

Tensor forward_slice(const Tensor& input, int32_t axis, int64_t start, int64_t end, int64_t step) {
  SliceAttributes attributes{};
  attributes.axis = axis;
  attributes.start = start;
  attributes.end = end;
  attributes.step = step;
  return apply(OpId::slice, input, &attributes);
}

Tensor reversed_slice(const Tensor& input, int32_t axis, int64_t start, int64_t end, int64_t step);

Tensor reversed(const Tensor& input, int32_t axis) { return reversed_slice(input, axis, INT64_MAX, INT64_MIN, -1); }

// The length of the blocks into which reversed_in_blocks cuts an axis: one that leaves no rest, if there is one.
int64_t block_length(int64_t length) {
  for (int64_t block = 2048; block >= 256; --block) {
    if (length % block == 0) return block;
  }
  return 512;
}

// Reverses a long axis: first its blocks, then the elements of each block. Both lists of indices are short.
Tensor reversed_in_blocks(const Tensor& input, int32_t axis) {
  const int64_t length = input.dims()[axis], block = block_length(length), rest = length % block;
  Dims blocks, joined = input.dims();
  for (int32_t i = 0; i < input.rank(); ++i) {
    blocks.push_back(i == axis ? length / block : input.dims()[i]);
    if (i == axis) blocks.push_back(block);
  }
  joined[axis] = length - rest;
  const Tensor cut = tenon::reshape(tenon::narrow(input, axis, rest, length - rest), blocks);
  const Tensor turned = tenon::reshape(reversed(reversed(cut, axis), axis + 1), joined);
  if (rest == 0) return turned;
  return tenon::cat({turned, reversed(tenon::narrow(input, axis, 0, rest), axis)}, axis);
}

// True if one i64 index for each place of the axis would be as large as the elements of the tensor, or larger.
bool has_large_indices(const Tensor& input, int32_t axis) {
  constexpr int64_t many = int64_t{1} << 16;
  if (is_open(input) || is_elsewhere(input) || input.rank() == EP_MAX_RANK) return false;
  const int64_t length = input.dims()[axis];
  return length >= many && input.bytes() <= length * static_cast<int64_t>(sizeof(int64_t));
}

// No view can step backwards, so this makes a copy.
Tensor reversed_slice(const Tensor& input, int32_t axis, int64_t start, int64_t end, int64_t step) {
  const infer::SliceRange range = value_or_throw(infer::slice_range("slice", input.dim(axis), start, end, step));
  if (range.length == 0) return tenon::narrow(input, axis, 0, 0);
  if (step == -1 && range.length == input.dim(axis) && has_large_indices(input, axis)) {
    return reversed_in_blocks(input, axis);
  }
  const int64_t stop = range.start + range.length * range.step;
  const MadeEverywhere scope(is_elsewhere(input));
  return tenon::gather_slices(input, axis, tenon::arange(range.start, stop, range.step, DType::i64, input.device()));
}

bool needs_copy(const Tensor& input, const Dims& target) {
  return !input.contiguous() && !infer::reshape_strides(layout(input), target);
}

[[gnu::noinline]] Tensor reshape_slow(const Tensor& input, IntList shape) {
  ShapeAttributes attributes{};
  if (row_major_shape<true>(input, shape, &attributes)) return apply(OpId::reshape, input, &attributes);
  if (among_open(input, shape)) return reshape_open(OpId::reshape, input, shape);
  require_defined("reshape", "input", input);
  const Dims asked = dims_of("reshape", shape);
  const Dims target = value_or_throw(infer::reshape("reshape", input.dims(), {asked.data(), asked.size()}));
  return needs_copy(input, target) ? viewed(tenon::contiguous(input), target) : viewed(input, target);
}

[[gnu::noinline]] Tensor view_slow(const Tensor& input, IntList size) {
  ShapeAttributes attributes{};
  if (row_major_shape<true>(input, size, &attributes)) return apply(OpId::view, input, &attributes);
  if (among_open(input, size)) return reshape_open(OpId::view, input, size);
  require_defined("view", "input", input);
  const Dims asked = dims_of("view", size);
  const Dims target = value_or_throw(infer::reshape("view", input.dims(), {asked.data(), asked.size()}));
  if (needs_copy(input, target)) {
    throw Error(Subject{"view"}, Code::invalid_argument,
                fmt::format("a tensor of shape {} and strides {} cannot be seen as shape {} without a copy.",
                            input.dims(), input.strides(), target),
                "Use reshape(), which copies where it must.");
  }
  return viewed(input, target, OpId::view);
}

}  // namespace

Tensor reshape(const Tensor& input, IntList shape) {
  ShapeAttributes attributes{};
  if (row_major_shape<false>(input, shape, &attributes)) [[likely]]
    return apply(OpId::reshape, input, &attributes);
  return reshape_slow(input, shape);
}

Tensor view(const Tensor& input, IntList size) {
  ShapeAttributes attributes{};
  if (row_major_shape<false>(input, size, &attributes)) [[likely]]
    return apply(OpId::view, input, &attributes);
  return view_slow(input, size);
}

Tensor flatten(const Tensor& input, int64_t start_dim, int64_t end_dim) {
  require_defined("flatten", "input", input);
  if (is_open(input)) [[unlikely]] {
    const SymDims dims = sizes(input);
    return viewed_open(OpId::reshape, input,
                       value_or_throw(infer::flatten<SymDim>("flatten", dims, start_dim, end_dim)));
  }
  return tenon::reshape(input, value_or_throw(infer::flatten("flatten", input.dims(), start_dim, end_dim)));
}

Tensor unflatten(const Tensor& input, int64_t dim, IntList sizes) {
  require_defined("unflatten", "input", input);
  const int32_t axis = axis_of("unflatten", dim, input.rank());
  if (!among_open(input, sizes)) {
    const Dims& dims = input.dims();
    const Dims asked = dims_of("unflatten", sizes);
    const Dims parts = value_or_throw(infer::reshape("unflatten", Dims{dims[axis]}, {asked.data(), asked.size()}));
    int64_t target[2 * EP_MAX_RANK];
    int64_t* end = std::copy(dims.begin(), dims.begin() + axis, target);
    end = std::copy(parts.begin(), parts.end(), end);
    end = std::copy(dims.begin() + axis + 1, dims.end(), end);
    return tenon::reshape(input, std::span<const int64_t>(target, end));
  }
  const SymDims asked = sym_dims_of("unflatten", sizes);
  const SymDims dims = tenon::sizes(input);
  const SymDims parts = value_or_throw(infer::reshape<SymDim>("unflatten", SymDims{dims[axis]}, asked));
  std::vector<SymDim> target(dims.begin(), dims.begin() + axis);
  target.insert(target.end(), parts.begin(), parts.end());
  target.insert(target.end(), dims.begin() + axis + 1, dims.end());
  return tenon::reshape(input, SizeList(std::move(target)));
}

Tensor permute(const Tensor& input, IntList dims) {
  require_defined("permute", "input", input);
  PermuteAttributes attributes{};
  attributes.axes = shape_attributes("permute", dims).dims;
  return apply(OpId::permute, input, &attributes);
}

Tensor transpose(const Tensor& input, int64_t dim0, int64_t dim1) {
  require_defined("transpose", "input", input);
  const int32_t a = axis_of("transpose", dim0, input.rank());
  const int32_t b = axis_of("transpose", dim1, input.rank());
  if (a == b) return input;
  PermuteAttributes attributes{};
  attributes.axes.rank = input.rank();
  for (int32_t axis = 0; axis < input.rank(); ++axis) attributes.axes.values[axis] = axis;
  std::swap(attributes.axes.values[a], attributes.axes.values[b]);
  return apply(OpId::permute, input, &attributes);
}

Tensor t(const Tensor& input) {
  require_defined("t", "input", input);
  if (input.rank() > 2) refuse("t", "a tensor of rank {} is not a matrix; use transpose.", input.rank());
  return input.rank() < 2 ? input : tenon::transpose(input, 0, 1);
}

Tensor movedim(const Tensor& input, IntList source, IntList destination) {
  require_defined("movedim", "input", input);
  if (source.size() != destination.size()) {
    refuse("movedim", "{} axes cannot move to {} positions.", source.size(), destination.size());
  }
  Dims axes = Dims::filled(input.rank(), -1);
  uint32_t moved = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    const int32_t from = axis_of("movedim", source[i], input.rank());
    const int32_t to = axis_of("movedim", destination[i], input.rank());
    if ((moved >> from & 1) != 0 || axes[to] >= 0) refuse("movedim", "an axis or a position is named twice.");
    moved |= 1u << from;
    axes[to] = from;
  }
  int32_t next = 0;
  for (int64_t& axis : axes) {
    if (axis >= 0) continue;
    while ((moved >> next & 1) != 0) ++next;
    axis = next++;
  }
  return tenon::permute(input, axes);
}

Tensor squeeze(const Tensor& input) {
  require_defined("squeeze", "input", input);
  const AxesAttributes all{};
  return apply(OpId::squeeze, input, &all);
}

Tensor squeeze(const Tensor& input, IntList dim) {
  require_defined("squeeze", "input", input);
  if (dim.size() == 0) return tenon::reshape(input, ShapeOf(input).list());  // a record without axes means all axes
  const AxesAttributes attributes = axes_attributes("squeeze", dim);
  return apply(OpId::squeeze, input, &attributes);
}

Tensor unsqueeze(const Tensor& input, IntList dim) {
  require_defined("unsqueeze", "input", input);
  const AxesAttributes attributes = axes_attributes("unsqueeze", dim);
  return apply(OpId::unsqueeze, input, &attributes);
}

Tensor expand(const Tensor& input, IntList size) {
  require_defined("expand", "input", input);
  if (is_open(size)) [[unlikely]] {
    Sized<ShapeAttributes> sized;
    sized.set(&sized.attributes.dims, sym_dims_of("expand", size));
    return apply(OpId::expand, {&input}, sized);
  }
  const ShapeAttributes attributes = shape_attributes("expand", size);
  return apply(OpId::expand, input, &attributes);
}

Tensor broadcast_to(const Tensor& input, IntList size) {
  require_defined("broadcast_to", "input", input);
  if (is_open(size)) return tenon::expand(input, size);
  const Dims dims = value_or_throw(infer::checked("broadcast_to", dims_of("broadcast_to", size)));
  return tenon::expand(input, dims);
}

Tensor expand_as(const Tensor& input, const Tensor& other) {
  require_defined("expand_as", "input", input);
  require_defined("expand_as", "other", other);
  return tenon::expand(input, ShapeOf(other).list());
}

Tensor slice(const Tensor& input, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  require_defined("slice", "input", input);
  if (input.rank() == 0) refuse("slice", "a tensor of rank 0 has no axis to slice.");
  const int32_t axis = axis_of("slice", dim, input.rank());
  const int64_t first = start.value_or(step < 0 ? INT64_MAX : 0);
  const int64_t last = end.value_or(step < 0 ? INT64_MIN : INT64_MAX);
  if (step < 0) return reversed_slice(input, axis, first, last, step);
  return forward_slice(input, axis, first, last, step);
}

Tensor narrow(const Tensor& input, int64_t dim, int64_t start, int64_t length) {
  require_defined("narrow", "input", input);
  if (input.rank() == 0) refuse("narrow", "a tensor of rank 0 has no axis to narrow.");
  const int32_t axis = axis_of("narrow", dim, input.rank());
  if (is_open(input)) return sized::narrow(input, axis, SymDim::saturated(start), SymDim::saturated(length));
  const int64_t size = input.dims()[axis];
  const int64_t first = start < 0 ? start + size : start;
  if (first < 0 || length < 0 || first > size - length) {
    refuse("narrow", "{} elements from {} are not all inside axis {} of length {}.", length, start, axis, size);
  }
  return forward_slice(input, axis, first, first + length, 1);
}

Tensor select(const Tensor& input, int64_t dim, int64_t index) {
  require_defined("select", "input", input);
  SelectAttributes attributes{};
  attributes.axis = dim;
  attributes.index = index;
  return apply(OpId::select, input, &attributes);
}

Tensor flip(const Tensor& input, IntList dims) {
  require_defined("flip", "input", input);
  uint64_t axes = 0;
  for (const int64_t dim : dims) axes |= uint64_t{1} << axis_of("flip", dim, input.rank());
  if (input.rank() > 1 && std::popcount(axes) == input.rank() && dims.size() == static_cast<size_t>(input.rank())) {
    return tenon::reshape(reversed(tenon::reshape(input, -1), 0), ShapeOf(input).list());  // in reverse order
  }
  Tensor result = input;
  for (const int64_t dim : dims) result = tenon::slice(result, dim, std::nullopt, std::nullopt, -1);
  return result.impl() == input.impl() ? tenon::clone(input) : result;
}

}  // namespace tenon::functors

namespace tenon::sized {

using functors::apply;
using functors::axis_of;
using functors::refuse;
using functors::Sized;

namespace {

// For an open `input`, or an open size.
Sized<SliceAttributes> slice_attributes(int32_t axis, SymDim start, SymDim end, int64_t step) {
  Sized<SliceAttributes> sized;
  sized.attributes.axis = axis;
  sized.set(&sized.attributes.start, start);
  sized.set(&sized.attributes.end, end);
  sized.attributes.step = step;
  return sized;
}

}  // namespace

Tensor slice(const Tensor& input, int64_t dim, SymDim start, SymDim end, int64_t step) {
  functors::require_defined("slice", "input", input);
  if (input.rank() == 0) refuse("slice", "a tensor of rank 0 has no axis to slice.");
  if (step < 1) refuse("slice", "step is {}; it must be at least 1.", step);
  const int32_t axis = axis_of("slice", dim, input.rank());
  return apply(OpId::slice, {&input}, slice_attributes(axis, start, end, step));
}

Tensor narrow(const Tensor& input, int64_t dim, SymDim start, SymDim length) {
  functors::require_defined("narrow", "input", input);
  if (input.rank() == 0) refuse("narrow", "a tensor of rank 0 has no axis to narrow.");
  const int32_t axis = axis_of("narrow", dim, input.rank());
  const SymDim size = size_at(input, axis);
  const SymDim first = start < 0 ? start + size : start;
  if (!expect(0 <= first) || !expect(0 <= length) || !expect(first + length <= size)) {
    refuse("narrow", "{} elements from {} are not all inside axis {} of length {}.", length, start, axis, size);
  }
  return apply(OpId::slice, {&input}, slice_attributes(axis, first, first + length, 1));
}

Tensor select(const Tensor& input, int64_t dim, SymDim index) {
  functors::require_defined("select", "input", input);
  Sized<SelectAttributes> sized;
  sized.attributes.axis = dim;
  sized.set(&sized.attributes.index, index);
  return apply(OpId::select, {&input}, sized);
}

Tensor slice_scatter(const Tensor& input, const Tensor& src, int64_t dim, SymDim start, SymDim end, int64_t step) {
  const Tensor part = tenon::cast(src, input.dtype());
  const int32_t axis = axis_of("slice_scatter", dim, input.rank());
  return apply(OpId::slice_scatter, {&input, &part}, slice_attributes(axis, start, end, step));
}

Tensor select_scatter(const Tensor& input, const Tensor& src, int64_t dim, SymDim index) {
  const Tensor part = tenon::cast(src, input.dtype());
  Sized<SelectAttributes> sized;
  sized.attributes.axis = dim;
  sized.set(&sized.attributes.index, index);
  return apply(OpId::select_scatter, {&input, &part}, sized);
}

}  // namespace tenon::sized
