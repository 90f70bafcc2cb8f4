// Ops that create tensors or put them together: concat, split, pad, gather, scatter, one-hot, resize.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/ops/attributes.h"
#include "sdk/onnx/exporter/operators.h"

namespace tenon::onnx {
namespace {

int64_t axis_of(const NodeWriter& n) { return n.attributes<AxisAttributes>().axis; }

void full(NodeWriter& n) {
  const std::string value = n.model().number(n.scalar(0), n.attributes<FullAttributes>().dtype);
  n.give(n.add("Expand", {value, n.model().shape(n.result().dims)}));
}

// Writes positions 0, 1, ... times the step, plus the start.
void arange(NodeWriter& n) {
  const DType dtype = n.attributes<FullAttributes>().dtype;
  const std::string count = n.add("Squeeze", {n.model().size(n.result().dims[0]), n.model().integers({0})});
  const std::string positions = n.add("Range", {n.model().integer(0), count, n.model().integer(1)});
  std::string made = n.cast(positions, DType::i64, dtype);
  if (n.scalar(2).to_double() != 1) made = n.add("Mul", {made, n.model().number(n.scalar(2), dtype)});
  if (n.scalar(0).to_double() != 0) made = n.add("Add", {made, n.model().number(n.scalar(0), dtype)});
  n.give(made);
}

void concat(NodeWriter& n) { n.give(n.add("Concat", n.all(), {{"axis", axis_of(n)}})); }

void split(NodeWriter& n) {
  const auto& at = n.attributes<SplitSizesAttributes>();
  std::vector<std::string> parts;
  for (int32_t i = 0; i < at.count; ++i) parts.push_back(n.model().size(n.size_of(at.sizes[i])));
  const std::string lengths = parts.size() == 1 ? parts[0] : n.add("Concat", parts, {{"axis", int64_t{0}}});
  const auto made =
      n.model().nodes("Split", {n.in(0), lengths}, {{"axis", int64_t{at.axis}}}, static_cast<size_t>(at.count));
  for (size_t i = 0; i < made.size(); ++i) n.give(made[i], i);
}

void pad(NodeWriter& n) {
  const ep_pad_attributes& at = n.attributes<PadAttributes>().window;
  std::vector<std::string> pads;
  for (const int64_t* side : {at.low, at.high}) {
    for (int64_t axis = 0; axis < n.rank(); ++axis) pads.push_back(n.model().size(n.size_of(side[axis])));
  }
  const char* mode = at.mode == EP_PAD_CONSTANT ? "constant" : at.mode == EP_PAD_REFLECT ? "reflect" : "edge";
  const std::string all = n.add("Concat", pads, {{"axis", int64_t{0}}});
  const std::string value = at.mode == EP_PAD_CONSTANT ? n.model().number(n.scalar(0), n.dtype()) : std::string();
  n.give(n.add("Pad", {n.in(0), all, value}, {{"mode", std::string(mode)}}));
}

void gather_slices(NodeWriter& n) { n.give(n.add("Gather", {n.in(0), n.in(1)}, {{"axis", axis_of(n)}})); }
void gather_elements(NodeWriter& n) { n.give(n.add("GatherElements", {n.in(0), n.in(1)}, {{"axis", axis_of(n)}})); }
void gather_nd(NodeWriter& n) {
  const std::string indices = n.cast(n.in(1), n.dtype(1), DType::i64);
  n.give(n.add("GatherND", {n.in(0), indices}, {{"batch_dims", int64_t{n.attributes<CoordinatesAttributes>().batch}}}));
}

// Expands the list of positions along `axis` to the shape of the updates.
std::string spread(NodeWriter& n, int64_t axis) {
  if (n.rank(1) != 1) n.refuse("ONNX scatters slices only at a list of positions.");
  std::vector<int64_t> column(static_cast<size_t>(n.rank() - axis), 1);
  column[0] = -1;
  const std::string index = n.add("Reshape", {n.in(1), n.model().integers(column)});
  return n.add("Expand", {index, n.model().shape(n.input(2).dims)});
}

void scatter(NodeWriter& n) {
  const ep_scatter_attributes& at = n.attributes<ScatterAttributes>().scatter;
  WrittenAttributes attributes;
  if (at.op == EP_SCATTER_MIN || at.op == EP_SCATTER_MAX) n.refuse("ONNX has no min or max reduction before opset 18.");
  if (at.op != EP_SCATTER_ASSIGN) {
    attributes.emplace_back("reduction", std::string(at.op == EP_SCATTER_ADD ? "add" : "mul"));
  }
  if (at.mode == EP_GATHER_COORDINATES) {
    if (at.axis != 0) n.refuse("ONNX's ScatterND has no batch axes.");
    return n.give(
        n.add("ScatterND", {n.in(0), n.cast(n.in(1), n.dtype(1), DType::i64), n.in(2)}, std::move(attributes)));
  }
  attributes.emplace_back("axis", int64_t{at.axis});
  const std::string index = at.mode == EP_GATHER_SLICES ? spread(n, at.axis) : n.in(1);
  n.give(n.add("ScatterElements", {n.in(0), index, n.in(2)}, std::move(attributes)));
}

void one_hot(NodeWriter& n) {
  const auto& at = n.attributes<DepthAttributes>();
  const auto one = [&](size_t scalar) {
    const std::string number = n.model().number(n.scalar(scalar), at.dtype);
    return n.add("Unsqueeze", {number, n.model().integers({0})});
  };
  const std::string values = n.add("Concat", {one(0), one(1)}, {{"axis", int64_t{0}}});
  n.give(n.add("OneHot", {n.in(0), n.model().size(n.size_of(at.depth)), values}, {{"axis", int64_t{at.axis}}}));
}

// How Resize places points along one axis. With `sizes`, ONNX computes the scale from the lengths.
struct Grid {
  std::string transform, rounding;
  bool sizes = true;
};

bool near(double a, double b) { return std::abs(a - b) <= 1e-8 * std::max(1.0, std::abs(b)); }

// Returns nothing if the axis does not change. Refuses placements that ONNX has no name for.
std::optional<Grid> grid_of(const NodeWriter& n, const ep_resize_attributes& at, int64_t axis, int64_t from,
                            int64_t to) {
  const double scale = at.scale[axis], offset = at.offset[axis];
  const bool half = (at.flags & EP_RESIZE_FLAG_HALF) != 0, nearest = at.mode == EP_RESIZE_NEAREST;
  if (from == to && scale == 1 && (half ? offset == -0.5 : offset == 0)) return std::nullopt;
  constexpr const char* rounds[] = {"", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"};
  Grid grid{half ? "half_pixel" : "asymmetric", nearest ? rounds[at.round] : ""};
  if (!half && !nearest && offset == 0 && from > 1 && to > 1 &&
      near(scale, static_cast<double>(to - 1) / static_cast<double>(from - 1))) {
    grid.transform = "align_corners";
    return grid;
  }
  const bool whole = near(offset, half ? -0.5 : 0);
  // floor((i + 1/2) / scale) is the element nearest to (i + 1/2) / scale - 1/2, halves up.
  const bool exact = half && nearest && at.round == EP_RESIZE_FLOOR && near(offset, 0);
  if (exact) grid.rounding = "round_prefer_ceil";
  if (!whole && !exact) n.refuse("ONNX has no coordinate mode for its points.");
  grid.sizes = near(scale, static_cast<double>(to) / static_cast<double>(from));
  if (!grid.sizes && static_cast<int64_t>(std::floor(static_cast<double>(from) * scale)) != to) {
    n.refuse("its scale does not produce its size.");
  }
  return grid;
}

void resize(NodeWriter& n) {
  const ep_resize_attributes& at = n.attributes<ResizeAttributes>().grid;
  if ((at.flags & EP_RESIZE_FLAG_ANTIALIAS) != 0) n.refuse("ONNX has antialias from opset 18 on.");
  if ((at.flags & EP_RESIZE_FLAG_EXTRAPOLATE) != 0) n.refuse("it fills points outside the input.");
  const std::vector<int64_t> from = n.fixed_dims(n.input(0)), to = n.fixed_dims(n.result());
  std::optional<Grid> grid;
  std::vector<float> scales;
  for (size_t axis = 0; axis < from.size(); ++axis) {
    const auto here = grid_of(n, at, static_cast<int64_t>(axis), from[axis], to[axis]);
    scales.push_back(static_cast<float>(at.scale[axis]));
    if (!here) continue;
    if (grid && (grid->transform != here->transform || grid->rounding != here->rounding)) {
      n.refuse("its axes are resized in different ways.");
    }
    grid = Grid{here->transform, here->rounding, here->sizes && (!grid || grid->sizes)};
  }
  if (!grid) return n.give(n.in(0));
  const char* mode = at.mode == EP_RESIZE_NEAREST ? "nearest" : at.mode == EP_RESIZE_LINEAR ? "linear" : "cubic";
  WrittenAttributes attributes{{"mode", std::string(mode)}, {"coordinate_transformation_mode", grid->transform}};
  if (!grid->rounding.empty()) attributes.emplace_back("nearest_mode", grid->rounding);
  if (at.mode == EP_RESIZE_CUBIC) attributes.emplace_back("cubic_coeff_a", at.cubic);
  if ((at.flags & EP_RESIZE_FLAG_EXCLUDE_OUTSIDE) != 0) attributes.emplace_back("exclude_outside", int64_t{1});
  std::vector<std::string> inputs{n.in(0), "", ""};
  if (grid->sizes) {
    inputs.push_back(n.model().integers(to));
  } else {
    const Tensor list = Tensor::from<float>(scales, {static_cast<int64_t>(scales.size())}, Device::current());
    inputs[2] = n.model().constant(list, "scales");
  }
  n.give(n.add("Resize", inputs, std::move(attributes)));
}

constexpr OperatorRow kAssembleRows[] = {
    {.op = "arange", .onnx = "Range", .write = arange},
    {.op = "concat", .onnx = "Concat", .write = concat},
    {.op = "empty", .onnx = "Expand", .write = full},
    {.op = "full", .onnx = "Expand", .write = full},
    {.op = "gather", .onnx = "GatherElements", .write = gather_elements},
    {.op = "gather_nd", .onnx = "GatherND", .write = gather_nd},
    {.op = "gather_slices", .onnx = "Gather", .write = gather_slices},
    {.op = "one_hot_values", .onnx = "OneHot", .write = one_hot},
    {.op = "pad", .onnx = "Pad", .write = pad},
    {.op = "resize", .onnx = "Resize", .write = resize},
    {.op = "scatter", .onnx = "ScatterElements", .write = scatter},
    {.op = "split_with_sizes_copy", .onnx = "Split", .write = split},
};

}  // namespace

std::span<const OperatorRow> assemble_rows() { return kAssembleRows; }

}  // namespace tenon::onnx
