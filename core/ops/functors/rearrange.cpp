// Rearranges the elements of tensors: stacks, rotations, tiles, unfolds.
#include <algorithm>
#include <limits>

#include "core/ops/functors/apply.h"
#include "core/ops/functors/sized.h"
#include "core/ops/functors/window.h"
#include "core/ops/operators.h"

namespace tenon::functors {
namespace {

void require_all(std::string_view op, const TensorList& tensors) {
  if (tensors.empty()) refuse(op, "the list of tensors is empty.");
  for (const Tensor& tensor : tensors) require_defined(op, "tensors", tensor);
}

TensorList each(TensorList tensors, Tensor (*change)(const Tensor&)) {
  for (Tensor& tensor : tensors) tensor = change(tensor);
  return tensors;
}

// Joins the tensors along `axis`, after `change`, which gives each at least `rank` axes.
Tensor joined(const TensorList& tensors, int32_t rank, Tensor (*change)(const Tensor&), int64_t axis) {
  const auto has_axes = [rank](const Tensor& tensor) { return tensor.rank() >= rank; };
  if (std::all_of(tensors.begin(), tensors.end(), has_axes)) return tenon::concat(tensors, axis);
  return tenon::concat(each(tensors, change), axis);
}

Tensor as_column(const Tensor& tensor) {
  return tensor.rank() < 2 ? tenon::reshape(tensor, {tensor.elements(), 1}) : tensor;
}

Dims broadcast_dims(std::string_view op, const TensorList& tensors) {
  require_all(op, tensors);
  Dims dims = tensors[0].dims();
  for (const Tensor& tensor : tensors) dims = value_or_throw(infer::broadcast(op, dims, tensor.dims()));
  return dims;
}

// Greater factors, windows and part counts are refused, so that no product of two overflows.
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

// The number of results of a call with `sections` parts; 0 if the call itself will fail.
size_t part_count(int64_t sections) { return sections > 0 && sections <= kMost ? static_cast<size_t>(sections) : 0; }

// The lengths of equal parts; if they do not divide evenly, the first parts have one more element.
std::vector<int64_t> even_parts(std::string_view op, int64_t length, int64_t sections) {
  if (sections < 1) refuse(op, "{} parts are not possible; there must be at least 1.", sections);
  if (sections > kMost) refuse(op, "{} parts are too many; there may be at most {}.", sections, kMost);
  std::vector<int64_t> sizes(static_cast<size_t>(sections), length / sections);
  for (int64_t i = 0; i < length % sections; ++i) ++sizes[static_cast<size_t>(i)];
  return sizes;
}

// The lengths between positions, like Python slices.
std::vector<int64_t> parts_between(int64_t length, IntList indices) {
  std::vector<int64_t> bounds{0};
  std::vector<int64_t> sizes;
  for (const int64_t index : indices)
    bounds.push_back(std::clamp<int64_t>(index < 0 ? index + length : index, 0, length));
  bounds.push_back(length);
  for (size_t i = 0; i + 1 < bounds.size(); ++i) sizes.push_back(std::max<int64_t>(bounds[i + 1] - bounds[i], 0));
  return sizes;
}

int32_t split_axis(std::string_view op, const Tensor& input, int64_t dim, int32_t least) {
  require_defined(op, "input", input);
  if (input.rank() < least) refuse(op, "input has shape {}; it must have rank at least {}.", input.dims(), least);
  return axis_of(op, dim, input.rank());
}

// The axis that hsplit divides: 1, or the only axis.
int64_t across(const Tensor& input) { return input.defined() && input.rank() == 1 ? 0 : 1; }

TensorList equal_parts(std::string_view op, const Tensor& input, int64_t sections, int64_t dim, int32_t least) {
  const int32_t axis = split_axis(op, input, dim, least);
  if (sections < 1 || input.dim(axis) % sections != 0) {
    refuse(op, "axis {} of length {} cannot be divided into {} equal parts.", axis, input.dim(axis), sections);
  }
  return tenon::tensor_split(input, sections, axis);
}

struct Windows {
  int64_t kernel[window::kMaxSpatialRank], stride[window::kMaxSpatialRank], padding[window::kMaxSpatialRank],
      dilation[window::kMaxSpatialRank];
};

Windows windows_of(std::string_view op, IntList kernel_size, IntList dilation, IntList padding, IntList stride) {
  Windows windows{};
  window::per_axis(op, "kernel_size", kernel_size, 2, windows.kernel);
  window::per_axis(op, "dilation", dilation, 2, windows.dilation);
  window::per_axis(op, "padding", padding, 2, windows.padding);
  window::per_axis(op, "stride", stride, 2, windows.stride);
  for (int axis = 0; axis < 2; ++axis) {
    if (windows.kernel[axis] < 1 || windows.dilation[axis] < 1 || windows.stride[axis] < 1 ||
        windows.padding[axis] < 0) {
      refuse(op, "kernel_size, dilation and stride must be at least 1 and padding at least 0.");
    }
    if (std::max({windows.kernel[axis], windows.dilation[axis], windows.stride[axis], windows.padding[axis]}) > kMost) {
      refuse(op, "kernel_size, dilation, stride and padding may be {} at most.", kMost);
    }
  }
  return windows;
}

int64_t count_of(const Windows& w, int axis, int64_t length) {
  const int64_t span = w.dilation[axis] * (w.kernel[axis] - 1) + 1;
  const int64_t room = length + 2 * w.padding[axis] - span;
  return room < 0 ? 0 : room / w.stride[axis] + 1;
}

// The position of each element of each window in the padded image, [kernel elements, windows], row-major.
Tensor window_positions(const Windows& w, const int64_t (&counts)[2], int64_t width, Device device) {
  const auto along = [&](int axis) {
    const Tensor offset = tenon::arange(w.kernel[axis], DType::i64, device) * w.dilation[axis];
    const Tensor start = tenon::arange(counts[axis], DType::i64, device) * w.stride[axis];
    return std::pair(offset, start);
  };
  const auto [kernel_rows, rows] = along(0);
  const auto [kernel_columns, columns] = along(1);
  const Tensor y = tenon::reshape(kernel_rows, {-1, 1, 1, 1}) + tenon::reshape(rows, {1, 1, -1, 1});
  const Tensor x = tenon::reshape(kernel_columns, {1, -1, 1, 1}) + tenon::reshape(columns, {1, 1, 1, -1});
  return tenon::reshape(y * width + x, {w.kernel[0] * w.kernel[1], counts[0] * counts[1]});
}

}  // namespace

Tensor hstack(const TensorList& tensors) {
  require_all("hstack", tensors);
  return joined(tensors, 1, tenon::atleast_1d, tensors[0].rank() < 2 ? 0 : 1);
}
Tensor vstack(const TensorList& tensors) {
  require_all("vstack", tensors);
  return joined(tensors, 2, tenon::atleast_2d, 0);
}
Tensor dstack(const TensorList& tensors) {
  require_all("dstack", tensors);
  return joined(tensors, 3, tenon::atleast_3d, 2);
}
Tensor column_stack(const TensorList& tensors) {
  require_all("column_stack", tensors);
  return joined(tensors, 2, as_column, 1);
}

Tensor atleast_1d(const Tensor& input) {
  require_defined("atleast_1d", "input", input);
  return input.rank() == 0 ? tenon::reshape(input, 1) : input;
}
Tensor atleast_2d(const Tensor& input) {
  require_defined("atleast_2d", "input", input);
  return input.rank() >= 2 ? input : tenon::unsqueeze(tenon::atleast_1d(input), 0);
}
Tensor atleast_3d(const Tensor& input) {
  require_defined("atleast_3d", "input", input);
  return input.rank() >= 3 ? input : tenon::unsqueeze(tenon::atleast_2d(input), -1);
}

TensorList tensor_split(const Tensor& input, int64_t indices_or_sections, int64_t dim) {
  const int32_t axis = split_axis("tensor_split", input, dim, 1);
  return tenon::split(input, even_parts("tensor_split", input.dim(axis), indices_or_sections), axis);
}
TensorList tensor_split(const Tensor& input, IntList indices_or_sections, int64_t dim) {
  const int32_t axis = split_axis("tensor_split", input, dim, 1);
  TensorList parts;
  int64_t start = 0;
  const std::vector<int64_t> sizes = parts_between(input.dim(axis), indices_or_sections);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0) {
      const int64_t bound = indices_or_sections[i - 1];
      start = std::clamp<int64_t>(bound < 0 ? bound + input.dim(axis) : bound, 0, input.dim(axis));
    }
    parts.push_back(tenon::narrow(input, axis, start, sizes[i]));
  }
  return parts;
}
size_t count_tensor_split(const Tensor&, int64_t sections, int64_t) { return part_count(sections); }
size_t count_tensor_split(const Tensor&, IntList indices, int64_t) { return indices.size() + 1; }

TensorList hsplit(const Tensor& input, int64_t sections) {
  return equal_parts("hsplit", input, sections, across(input), 1);
}
TensorList hsplit(const Tensor& input, IntList indices) { return tenon::tensor_split(input, indices, across(input)); }
TensorList vsplit(const Tensor& input, int64_t sections) { return equal_parts("vsplit", input, sections, 0, 2); }
TensorList vsplit(const Tensor& input, IntList indices) { return tenon::tensor_split(input, indices, 0); }
TensorList dsplit(const Tensor& input, int64_t sections) { return equal_parts("dsplit", input, sections, 2, 3); }
TensorList dsplit(const Tensor& input, IntList indices) { return tenon::tensor_split(input, indices, 2); }
size_t count_hsplit(const Tensor&, int64_t sections) { return part_count(sections); }
size_t count_hsplit(const Tensor&, IntList indices) { return indices.size() + 1; }
size_t count_vsplit(const Tensor&, int64_t sections) { return part_count(sections); }
size_t count_vsplit(const Tensor&, IntList indices) { return indices.size() + 1; }
size_t count_dsplit(const Tensor&, int64_t sections) { return part_count(sections); }
size_t count_dsplit(const Tensor&, IntList indices) { return indices.size() + 1; }

TensorList unbind(const Tensor& input, int64_t dim) {
  const int32_t axis = split_axis("unbind", input, dim, 1);
  TensorList parts;
  for (int64_t i = 0; i < input.dim(axis); ++i) parts.push_back(tenon::select(input, axis, i));
  return parts;
}
size_t count_unbind(const Tensor& input, int64_t dim) { return static_cast<size_t>(input.dim(dim)); }

TensorList broadcast_tensors(const TensorList& tensors) {
  const Dims dims = broadcast_dims("broadcast_tensors", tensors);
  TensorList parts;
  parts.reserve(tensors.size());
  for (const Tensor& tensor : tensors) parts.push_back(tensor.dims() == dims ? tensor : tenon::expand(tensor, dims));
  return parts;
}
size_t count_broadcast_tensors(const TensorList& tensors) { return tensors.size(); }

TensorList meshgrid(const TensorList& tensors, std::string_view indexing) {
  require_all("meshgrid", tensors);
  if (indexing != "ij" && indexing != "xy") refuse("meshgrid", "indexing is '{}'; it may be 'ij' or 'xy'.", indexing);
  TensorList parts;
  const auto rank = static_cast<int32_t>(tensors.size());
  Dims dims;
  for (const Tensor& tensor : tensors) {
    if (tensor.rank() > 1)
      refuse("meshgrid", "a tensor of shape {} was given; each must have rank 0 or 1.", tensor.dims());
    dims.push_back(tensor.elements());
  }
  for (int32_t axis = 0; axis < rank; ++axis) {
    Dims shape = Dims::filled(rank, 1);
    shape[axis] = dims[axis];
    Tensor part = tenon::expand(tenon::reshape(tensors[static_cast<size_t>(axis)], shape), dims);
    if (indexing == "xy" && rank > 1) part = tenon::transpose(part, 0, 1);
    parts.push_back(part);
  }
  return parts;
}
size_t count_meshgrid(const TensorList& tensors, std::string_view) { return tensors.size(); }

Tensor cartesian_prod(const TensorList& tensors) {
  const TensorList grid = tenon::meshgrid(tensors);
  if (grid.size() == 1) return grid[0];
  TensorList columns;
  for (const Tensor& each_part : grid) columns.push_back(tenon::reshape(each_part, -1));
  return tenon::stack(columns, 1);
}

// A list that is not row-major is copied, even if a view could show it.
Tensor ravel(const Tensor& input) { return tenon::reshape(tenon::contiguous(input), -1); }
Tensor swapaxes(const Tensor& input, int64_t axis0, int64_t axis1) { return tenon::transpose(input, axis0, axis1); }
Tensor adjoint(const Tensor& input) { return tenon::transpose(input, -2, -1); }
Tensor view_as(const Tensor& input, const Tensor& other) {
  require_defined("view_as", "other", other);
  return tenon::view(input, ShapeOf(other).list());
}
Tensor reshape_as(const Tensor& input, const Tensor& other) {
  require_defined("reshape_as", "other", other);
  return tenon::reshape(input, ShapeOf(other).list());
}
Tensor type_as(const Tensor& input, const Tensor& other) {
  require_defined("type_as", "other", other);
  return tenon::cast(input, other.dtype());
}

Tensor fliplr(const Tensor& input) {
  require_defined("fliplr", "input", input);
  if (input.rank() < 2) refuse("fliplr", "input has shape {}; it must have rank at least 2.", input.dims());
  return tenon::flip(input, 1);
}
Tensor flipud(const Tensor& input) {
  require_defined("flipud", "input", input);
  if (input.rank() < 1) refuse("flipud", "a tensor of rank 0 has no axis.");
  return tenon::flip(input, 0);
}

Tensor rot90(const Tensor& input, int64_t k, IntList dims) {
  require_defined("rot90", "input", input);
  if (dims.size() != 2) refuse("rot90", "dims has {} axes; a plane has 2.", dims.size());
  const int32_t a = axis_of("rot90", dims[0], input.rank());
  const int32_t b = axis_of("rot90", dims[1], input.rank());
  if (a == b) refuse("rot90", "dims names axis {} twice.", a);
  const int64_t planes[] = {a, b};
  switch ((k % 4 + 4) % 4) {
    case 1: return tenon::transpose(tenon::flip(input, b), a, b);
    case 2: return tenon::flip(input, IntList(planes));
    case 3: return tenon::flip(tenon::transpose(input, a, b), b);
    default: return tenon::clone(input);
  }
}

Tensor roll(const Tensor& input, IntList shifts, IntList dims) {
  require_defined("roll", "input", input);
  if (dims.empty()) {
    if (shifts.size() != 1) refuse("roll", "without dims there must be one shift, not {}.", shifts.size());
    return tenon::reshape(tenon::roll(tenon::reshape(input, -1), shifts, 0), ShapeOf(input).list());
  }
  if (shifts.size() != dims.size()) refuse("roll", "there are {} shifts for {} axes.", shifts.size(), dims.size());
  Tensor result = input;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int32_t axis = axis_of("roll", dims[i], input.rank());
    const int64_t length = result.dim(axis);
    const int64_t shift = length == 0 ? 0 : (shifts[i] % length + length) % length;
    if (shift == 0) continue;
    result = tenon::concat(
        {tenon::narrow(result, axis, length - shift, shift), tenon::narrow(result, axis, 0, length - shift)}, axis);
  }
  return result.impl() == input.impl() ? tenon::clone(input) : result;
}

Tensor repeat(const Tensor& input, IntList repeats) {
  require_defined("repeat", "input", input);
  if (repeats.size() < static_cast<size_t>(input.rank())) {
    refuse("repeat", "there are {} repeats for {} axes.", repeats.size(), input.rank());
  }
  return tenon::tile(input, repeats);
}

Tensor repeat_interleave(const Tensor& input, int64_t repeats, std::optional<int64_t> dim) {
  require_defined("repeat_interleave", "input", input);
  if (repeats < 0) refuse("repeat_interleave", "{} repeats are not possible; the number must be at least 0.", repeats);
  const Tensor x = dim ? input : tenon::reshape(input, -1);
  if (x.rank() == 0) refuse("repeat_interleave", "a tensor of rank 0 has no axis.");
  const int32_t axis = axis_of("repeat_interleave", dim.value_or(0), x.rank());
  if (repeats == 0) return tenon::narrow(x, axis, 0, 0);
  SymDims expanded = sizes(x), dims = expanded;
  int64_t length = 0;
  if (__builtin_mul_overflow(hint_of(dims[axis]), repeats, &length))
    refuse("repeat_interleave", "{} repeats make the axis longer than 2^63 - 1.", repeats);
  if (x.rank() == EP_MAX_RANK) {
    const Tensor positions = tenon::arange(length, DType::i64, x.device());
    return tenon::gather_slices(x, axis, tenon::floor_divide(positions, Scalar(repeats)));
  }
  dims[axis] *= repeats;
  expanded.insert(axis + 1, repeats);
  return tenon::reshape(tenon::clone(tenon::expand(tenon::unsqueeze(x, axis + 1), SizeList(expanded))), SizeList(dims));
}

namespace {

// The product of the dims of `x` from `first` to before `end`.
int64_t count_between(const Tensor& x, int32_t first, int32_t end) {
  int64_t count = 1;
  for (int32_t axis = first; axis < end; ++axis) count *= x.dims()[axis];
  return count;
}

}  // namespace

Tensor pixel_shuffle(const Tensor& input, int64_t upscale_factor) {
  require_defined("pixel_shuffle", "input", input);
  const int64_t r = upscale_factor;
  if (r < 1 || r > kMost || input.rank() < 3 || input.dim(-3) % (r * r) != 0) {
    refuse("pixel_shuffle", "input of shape {} has no channels for squares of {} by {}.", input.dims(), r, r);
  }
  const int32_t first = input.rank() - 3;
  const int64_t channels = input.dim(-3) / (r * r), height = input.dim(-2), width = input.dim(-1);
  Dims result = input.dims();
  result[first] = channels;
  result[first + 1] = height * r;
  result[first + 2] = width * r;
  const Tensor squares = tenon::reshape(input, {count_between(input, 0, first), channels, r, r, height, width});
  return tenon::reshape(tenon::clone(tenon::permute(squares, {0, 1, 4, 2, 5, 3})), result);
}

Tensor pixel_unshuffle(const Tensor& input, int64_t downscale_factor) {
  require_defined("pixel_unshuffle", "input", input);
  const int64_t r = downscale_factor;
  if (r < 1 || input.rank() < 3 || input.dim(-2) % r != 0 || input.dim(-1) % r != 0) {
    refuse("pixel_unshuffle", "input of shape {} has no squares of {} by {}.", input.dims(), r, r);
  }
  const int32_t first = input.rank() - 3;
  const int64_t channels = input.dim(-3), height = input.dim(-2) / r, width = input.dim(-1) / r;
  Dims result = input.dims();
  result[first] = channels * r * r;
  result[first + 1] = height;
  result[first + 2] = width;
  const Tensor squares = tenon::reshape(input, {count_between(input, 0, first), channels, height, r, width, r});
  return tenon::reshape(tenon::clone(tenon::permute(squares, {0, 1, 3, 5, 2, 4})), result);
}

Tensor channel_shuffle(const Tensor& input, int64_t groups) {
  require_defined("channel_shuffle", "input", input);
  if (groups < 1 || input.rank() < 3 || input.dim(1) % groups != 0) {
    refuse("channel_shuffle", "input of shape {} has no {} groups of channels.", input.dims(), groups);
  }
  const Tensor parts =
      tenon::reshape(input, {input.dim(0), groups, input.dim(1) / groups, count_between(input, 2, input.rank())});
  return tenon::reshape(tenon::clone(tenon::transpose(parts, 1, 2)), input.dims());
}

Tensor unfold(const Tensor& input, IntList kernel_size, IntList dilation, IntList padding, IntList stride) {
  constexpr std::string_view op = "unfold";
  require_defined(op, "input", input);
  if (input.rank() == 3) {
    return tenon::squeeze(tenon::unfold(tenon::unsqueeze(input, 0), kernel_size, dilation, padding, stride), 0);
  }
  if (input.rank() != 4) refuse(op, "input has shape {}; it must be [n, c, h, w] or [c, h, w].", input.dims());
  const Windows w = windows_of(op, kernel_size, dilation, padding, stride);
  const int64_t counts[2] = {count_of(w, 0, input.dim(2)), count_of(w, 1, input.dim(3))};
  if (counts[0] == 0 || counts[1] == 0) refuse(op, "no window fits into input of shape {}.", input.dims());
  const int64_t borders[] = {w.padding[1], w.padding[1], w.padding[0], w.padding[0]};
  const Tensor padded = w.padding[0] + w.padding[1] == 0 ? input : tenon::pad(input, IntList(borders));
  const Tensor positions = window_positions(w, counts, padded.dim(3), input.device());
  const Tensor found = tenon::gather_slices(tenon::flatten(padded, 2, 3), 2, positions);
  return tenon::flatten(found, 1, 2);
}

Tensor fold(const Tensor& input, IntList output_size, IntList kernel_size, IntList dilation, IntList padding,
            IntList stride) {
  constexpr std::string_view op = "fold";
  require_defined(op, "input", input);
  if (input.rank() == 2) {
    return tenon::squeeze(tenon::fold(tenon::unsqueeze(input, 0), output_size, kernel_size, dilation, padding, stride),
                          0);
  }
  const Windows w = windows_of(op, kernel_size, dilation, padding, stride);
  int64_t size[window::kMaxSpatialRank];
  window::per_axis(op, "output_size", output_size, 2, size);
  const int64_t counts[2] = {count_of(w, 0, size[0]), count_of(w, 1, size[1])};
  const int64_t inside = w.kernel[0] * w.kernel[1], windows = counts[0] * counts[1];
  if (input.rank() != 3 || input.dim(1) % inside != 0 || input.dim(2) != windows) {
    refuse(op, "input has shape {}; it must be [n, c * {}, {}].", input.dims(), inside, windows);
  }
  const int64_t channels = input.dim(1) / inside;
  const int64_t height = size[0] + 2 * w.padding[0], width = size[1] + 2 * w.padding[1];
  const Tensor positions = tenon::reshape(window_positions(w, counts, width, input.device()), -1);
  const Tensor zeros = tenon::zeros({input.dim(0), channels, height * width}, input.dtype(), input.device());
  const Tensor sums =
      tenon::index_add(zeros, 2, positions, tenon::reshape(input, {input.dim(0), channels, inside * windows}));
  const Tensor image = tenon::reshape(sums, {input.dim(0), channels, height, width});
  return tenon::narrow(tenon::narrow(image, 2, w.padding[0], size[0]), 3, w.padding[1], size[1]);
}

}  // namespace tenon::functors
