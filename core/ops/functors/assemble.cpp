// Joins and splits tensors, and pads and repeats them.
#include <algorithm>

#include "core/ops/functors/apply.h"
#include "core/ops/functors/sized.h"
#include "core/ops/scalar_patch.h"
#include "core/ops/sized_ops.h"
#include "primitives/infer/assemble.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

// The most parts of one primitive: its operands without its output (or input).
constexpr size_t kMostParts = EP_MAX_OPERANDS - 1;

bool is_bare_empty(const Tensor& tensor) { return tensor.rank() == 1 && is_empty(tensor); }

// The non-empty tensors, in one dtype.
TensorList joined_parts(const TensorList& tensors) {
  DType dtype = tensors[0].dtype();
  for (const Tensor& tensor : tensors) dtype = promote(dtype, tensor.dtype());
  TensorList parts;
  for (const Tensor& tensor : tensors) {
    if (!is_empty(tensor)) parts.push_back(tenon::cast(tensor, dtype));
  }
  if (parts.empty()) {
    const auto shaped = std::find_if_not(tensors.begin(), tensors.end(), is_bare_empty);
    parts.push_back(tenon::cast(shaped == tensors.end() ? tensors[0] : *shaped, dtype));
  }
  return parts;
}

bool same_shape(const Tensor& a, const Tensor& b) {
  return is_open(a) || is_open(b) ? same_sizes(sizes(a), sizes(b)) : a.dims() == b.dims();
}

// True if one record can join the tensors directly: several, of one dtype, none empty. The record's rule checks their
// shapes.
bool joined_at_once(const TensorList& tensors) {
  if (tensors.size() < 2 || tensors.size() > kMostParts) return false;
  return std::all_of(tensors.begin(), tensors.end(), [dtype = tensors[0].dtype()](const Tensor& tensor) {
    return tensor.dtype() == dtype && !is_empty(tensor);
  });
}

Tensor concat_some(std::span<const Tensor> parts, int32_t axis) {
  if (parts.size() == 1) return parts[0];
  const Tensor* inputs[kMostParts];
  for (size_t i = 0; i < parts.size(); ++i) inputs[i] = &parts[i];
  AxisAttributes attributes{};
  attributes.axis = axis;
  Tensor result[1];
  apply(OpId::concat, {inputs, parts.size()}, &attributes, result);
  return std::move(result[0]);
}

// The empty result of a concat. Its length along the axis is still the sum of the parts' lengths.
Tensor concat_empty(const TensorList& tensors, const Tensor& like, const Dims& dims) {
  Tensor result = tenon::full(dims, Scalar(0), like.dtype(), like.device());
  for (const Tensor& tensor : tensors) result = with_history_of(tensor, std::move(result));
  return result;
}

int64_t checked_size(std::string_view op, int64_t size) {
  if (size < 1) refuse(op, "parts of {} elements are not possible; a part has at least 1.", size);
  return size;
}

TensorList narrowed(const Tensor& input, int32_t axis, std::span<const int64_t> sizes) {
  TensorList parts;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    parts.push_back(tenon::narrow(input, axis, start, size));
    start += size;
  }
  return parts;
}

int32_t split_axis(std::string_view op, const Tensor& input, int64_t dim) {
  require_defined(op, "input", input);
  if (input.rank() == 0) refuse(op, "a tensor of rank 0 has no axis to split.");
  return axis_of(op, dim, input.rank());
}

// The length of each chunk except the last.
int64_t chunk_size(const Tensor& input, int64_t chunks, int64_t dim) {
  const int32_t axis = split_axis("chunk", input, dim);
  if (chunks < 1) refuse("chunk", "{} parts are not possible; there must be at least 1.", chunks);
  return std::max<int64_t>((input.dim(axis) - 1) / chunks + 1, 1);
}

int32_t pad_mode(std::string_view mode) {
  if (mode == "constant") return EP_PAD_CONSTANT;
  if (mode == "reflect") return EP_PAD_REFLECT;
  if (mode == "replicate") return EP_PAD_EDGE;
  refuse("pad", "mode is '{}'; it may be 'constant', 'reflect' or 'replicate'.", mode);
}

// `input` without the elements that negative padding crops. Sets the negative padding in `window` to 0.
Tensor cropped(Tensor input, ep_pad_attributes* window) {
  for (int32_t axis = 0; axis < input.rank(); ++axis) {
    const int64_t low = std::min<int64_t>(window->low[axis], 0);
    const int64_t high = std::min<int64_t>(window->high[axis], 0);
    if (low == 0 && high == 0) continue;
    input = sized::narrow(input, axis, -low, size_at(input, axis) + low + high);
    window->low[axis] -= low;
    window->high[axis] -= high;
  }
  return input;
}

// Removes the negative padding from `window` and returns it.
ep_pad_attributes taken_negative(ep_pad_attributes* window, int32_t rank) {
  ep_pad_attributes negative{};
  for (int32_t axis = 0; axis < rank; ++axis) {
    negative.low[axis] = std::min<int64_t>(window->low[axis], 0);
    negative.high[axis] = std::min<int64_t>(window->high[axis], 0);
    window->low[axis] -= negative.low[axis];
    window->high[axis] -= negative.high[axis];
  }
  return negative;
}

// Repeats `input` counts[i] times along axis i; there is one count per axis. Always a copy, even if strides could
// repeat an axis of length 1.
Tensor repeated(const Tensor& input, const Dims& counts) {
  Tensor seen = input;
  SymDims expanded = sizes(input), dims = expanded;
  for (int32_t axis = counts.rank(); axis-- > 0;) {
    if (counts[axis] == 1) continue;
    int64_t length = 0;
    if (__builtin_mul_overflow(hint_of(dims[axis]), counts[axis], &length))
      refuse("tile", "{} repeats make an axis longer than 2^63 - 1.", counts[axis]);
    dims[axis] *= counts[axis];
    seen = tenon::unsqueeze(seen, axis);
    expanded.insert(axis, counts[axis]);
  }
  return tenon::reshape(tenon::clone(tenon::expand(seen, SizeList(expanded))), SizeList(dims));
}

// Throws if `crop` removes more than `dims` has.
void require_left(const Dims& dims, const ep_pad_attributes& crop) {
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if (dims[axis] + crop.low[axis] + crop.high[axis] >= 0) continue;
    refuse("pad", "padding ({}, {}) of axis {} crops more than its {} elements.", crop.low[axis], crop.high[axis], axis,
           dims[axis]);
  }
}

bool pads_nothing(const ep_pad_attributes& window, int32_t rank) {
  for (int32_t axis = 0; axis < rank; ++axis) {
    if (window.low[axis] != 0 || window.high[axis] != 0) return false;
  }
  return true;
}

}  // namespace

Tensor concat(const TensorList& tensors, int64_t dim) {
  if (tensors.empty()) refuse("concat", "the list of tensors is empty.");
  const CalledScope scope(op_row(OpId::concat).named);
  for (const Tensor& tensor : tensors) require_defined("concat", "tensors", tensor);
  const auto shaped = std::find_if_not(tensors.begin(), tensors.end(), is_bare_empty);
  const Tensor& first = shaped == tensors.end() ? tensors[0] : *shaped;
  if (first.rank() == 0) refuse("concat", "tensors of rank 0 have no axis to join along; use stack.");
  const int32_t axis = axis_of("concat", dim, first.rank());
  if (joined_at_once(tensors)) return concat_some(tensors, axis);
  std::vector<Dims> shapes;
  for (const Tensor& tensor : tensors) shapes.push_back(tensor.impl()->dims);  // the record's rule reads all sizes
  const Dims dims = value_or_throw(infer::concat("concat", shapes, axis));
  TensorList parts = joined_parts(tensors);
  if (is_empty(parts[0])) {
    for (const Tensor& tensor : tensors) (void)tensor.dims();
    return concat_empty(tensors, parts[0], dims);
  }
  if (parts.size() == 1) return tenon::clone(parts[0]);
  while (parts.size() > 1) {
    TensorList longer;
    for (size_t i = 0; i < parts.size(); i += kMostParts) {
      longer.push_back(concat_some(std::span(parts).subspan(i, std::min(kMostParts, parts.size() - i)), axis));
    }
    parts = std::move(longer);
  }
  return parts[0];
}

Tensor stack(const TensorList& tensors, int64_t dim) {
  if (tensors.empty()) refuse("stack", "the list of tensors is empty.");
  TensorList rows;
  rows.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    require_defined("stack", "tensors", tensor);
    if (!same_shape(tensor, tensors[0])) {
      refuse("stack", "shapes {} and {} differ.", sizes(tensors[0]), sizes(tensor));
    }
    rows.push_back(tenon::unsqueeze(tensor, dim));
  }
  return tenon::concat(rows, axis_of("stack", dim, tensors[0].rank() + 1));
}

TensorList split(const Tensor& input, int64_t split_size, int64_t dim) {
  const int32_t axis = split_axis("split", input, dim);
  const int64_t size = checked_size("split", split_size);
  return narrowed(input, axis, value_or_throw(infer::split_sizes("split", input.dim(axis), size)));
}

TensorList split(const Tensor& input, IntList split_size, int64_t dim) {
  const int32_t axis = split_axis("split", input, dim);
  if (is_open(input) || is_open(split_size)) return sized::split(input, sizes_of(split_size), axis);
  (void)value_or_throw(infer::split("split", input.dims(), axis, split_size));
  return narrowed(input, axis, split_size);
}

size_t count_split(const Tensor& input, int64_t split_size, int64_t dim) {
  const int32_t axis = split_axis("split", input, dim);
  return value_or_throw(infer::split_sizes("split", input.dim(axis), checked_size("split", split_size))).size();
}
size_t count_split(const Tensor&, IntList split_size, int64_t) { return split_size.size(); }

TensorList split_with_sizes_copy(const Tensor& input, IntList split_sizes, int64_t dim) {
  const int32_t axis = split_axis("split_with_sizes_copy", input, dim);
  (void)input.dim(axis);
  (void)value_or_throw(infer::split("split_with_sizes_copy", input.impl()->dims, axis, split_sizes));
  const bool all_there = std::find(split_sizes.begin(), split_sizes.end(), 0) == split_sizes.end();
  if (split_sizes.size() > kMostParts || !all_there || split_sizes.size() < 2 || is_empty(input)) {
    TensorList parts = narrowed(input, axis, split_sizes);
    for (Tensor& part : parts) part = tenon::clone(part);
    return parts;
  }
  SplitSizesAttributes attributes{};
  attributes.axis = axis;
  attributes.count = static_cast<int32_t>(split_sizes.size());
  std::copy(split_sizes.begin(), split_sizes.end(), attributes.sizes);
  TensorList parts(split_sizes.size());
  const Tensor* inputs[] = {&input};
  apply(OpId::split_with_sizes_copy, inputs, &attributes, parts);
  return parts;
}

TensorList chunk(const Tensor& input, int64_t chunks, int64_t dim) {
  return tenon::split(input, chunk_size(input, chunks, dim), dim);
}
size_t count_chunk(const Tensor& input, int64_t chunks, int64_t dim) {
  return count_split(input, chunk_size(input, chunks, dim), dim);
}

Tensor pad(const Tensor& input, IntList pad, std::string_view mode, std::optional<Scalar> value) {
  require_defined("pad", "input", input);
  if (pad.size() % 2 != 0 || pad.size() / 2 > static_cast<size_t>(input.rank())) {
    refuse("pad", "the list has {} numbers; it must have two per axis, for at most {} axes.", pad.size(), input.rank());
  }
  const Scalar fill = value.value_or(Scalar(0));
  PadAttributes attributes{};
  attributes.window.mode = pad_mode(mode);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    attributes.window.low[static_cast<size_t>(input.rank()) - 1 - i] = pad[2 * i];
    attributes.window.high[static_cast<size_t>(input.rank()) - 1 - i] = pad[2 * i + 1];
  }
  // A border copies cropped elements too, so crop last; constants are added around the cropped part.
  PadAttributes crop{};
  if (attributes.window.mode != EP_PAD_CONSTANT) crop.window = taken_negative(&attributes.window, input.rank());
  const auto rank = static_cast<size_t>(input.rank());
  const Dims dims = value_or_throw(infer::pad("pad", input.impl()->dims, attributes.window.mode,
                                              {attributes.window.low, rank}, {attributes.window.high, rank}));
  require_left(dims, crop.window);
  if (is_empty(input)) {
    (void)input.dims();  // binds open sizes, whose hints are in `dims`
    return with_history_of(input, cropped(tenon::full(dims, fill, input.dtype(), input.device()), &crop.window));
  }
  const Tensor source = cropped(input, &attributes.window);
  if (is_empty(source)) {
    (void)input.dims();
    return with_history_of(source, tenon::full(dims, fill, input.dtype(), input.device()));
  }
  if (pads_nothing(attributes.window, source.rank())) return tenon::clone(cropped(source, &crop.window));
  return cropped(apply(OpId::pad, {&source}, &attributes, {&fill, 1}), &crop.window);
}

Tensor tile(const Tensor& input, IntList dims) {
  require_defined("tile", "input", input);
  Tensor result = input;
  while (result.rank() < static_cast<int32_t>(dims.size())) result = tenon::unsqueeze(result, 0);
  Dims counts = dims_of("tile", dims);
  while (counts.rank() < result.rank()) counts.insert(0, 1);
  int32_t repeating = 0;
  for (int32_t axis = 0; axis < counts.rank(); ++axis) {
    if (counts[axis] < 0) refuse("tile", "{} repeats are not possible; the number must be at least 0.", counts[axis]);
    if (counts[axis] == 0) {
      result = tenon::narrow(result, axis, 0, 0);
      counts[axis] = 1;
    }
    if (counts[axis] > 1) ++repeating;
  }
  if (result.rank() + repeating <= EP_MAX_RANK) return repeated(result, counts);
  for (int32_t axis = 0; axis < counts.rank(); ++axis) {
    if (counts[axis] > 1) result = tenon::concat(TensorList(static_cast<size_t>(counts[axis]), result), axis);
  }
  return result;
}

}  // namespace tenon::functors

namespace tenon::sized {

Tensor div(const Tensor& input, SymDim divisor) {
  const Scalar scalars[] = {Scalar(0), Scalar(static_cast<double>(hint_of(divisor)))};
  if (divisor.is_number()) return tenon::div(input, scalars[1]);
  const Tensor* inputs[] = {&input, nullptr};
  const Patches patches{{Patch{kScalarPatch + 1, divisor}}};
  Tensor result;
  OpCall call;
  call.op = &op_row(OpId::div);
  call.inputs = inputs;
  call.scalars = scalars;
  call.patches = &patches;
  call.outputs = {&result, 1};
  submit(call);
  return result;
}

TensorList split(const Tensor& input, std::span<const SymDim> sizes, int64_t dim) {
  const int32_t axis = functors::split_axis("split", input, dim);
  SymDim start = 0;
  TensorList parts;
  for (const SymDim size : sizes) {
    parts.push_back(narrow(input, axis, start, size));
    start += size;
  }
  if (!expect(start == size_at(input, axis))) {
    functors::refuse("split", "the parts have {} elements together, but axis {} has {}.", start, axis,
                     size_at(input, axis));
  }
  return parts;
}

Tensor tile(const Tensor& input, std::span<const SymDim> repeats) {
  Tensor result = input;
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i].is_number() && repeats[i].number() == 1) continue;
    const auto axis = static_cast<int32_t>(i);
    SymDims dims = sizes(result);
    SymDims expanded = dims;
    expanded.insert(axis, repeats[i]);
    dims[axis] *= repeats[i];
    result = reshape(expand(unsqueeze(result, axis), SizeList(expanded)), SizeList(dims));
  }
  return result;
}

}  // namespace tenon::sized
