// Softmax and norms.
#include "core/ops/attributes.h"
#include "sdk/onnx/exporter/operators.h"

namespace tenon::onnx {
namespace {

void by_axis(NodeWriter& n, std::string_view op) {
  const int64_t axis = n.attributes<SoftmaxAttributes>().axis;
  if (n.rank() == 0) n.refuse("a tensor of rank 0 has no axis.");
  n.give(n.add(op, {n.in(0)}, {{"axis", axis}}));
}
void softmax(NodeWriter& n) { by_axis(n, "Softmax"); }
void log_softmax(NodeWriter& n) { by_axis(n, "LogSoftmax"); }

// A tensor of shape `dims` with every element equal to `value`.
std::string filled(NodeWriter& n, double value, const SymDims& dims) {
  return n.add("Expand", {n.model().number(Scalar(value), n.dtype()), n.model().shape(dims)});
}

// ONNX requires a scale.
void layer_norm(NodeWriter& n) {
  const int64_t axis = n.attributes<AxisAttributes>().axis;
  const SymDims dims = n.dims(n.input(0));
  const SymDims rows(std::span<const SymDim>(dims.begin() + axis, dims.end()));
  const std::string scale = n.has(1) ? n.in(1) : filled(n, 1, rows);
  const std::string shift = n.has(2) ? n.in(2) : std::string();
  n.give(n.add("LayerNormalization", {n.in(0), scale, shift}, {{"axis", axis}, {"epsilon", n.scalar(0).to_double()}}));
}

void batch_norm(NodeWriter& n) {
  if (n.attributes<AxisAttributes>().axis != 1) n.refuse("ONNX requires the channels in axis 1.");
  n.give(n.add("BatchNormalization", {n.in(0), n.in(1), n.in(2), n.in(3), n.in(4)},
               {{"epsilon", n.scalar(0).to_double()}}));
}

// Writes each group as a channel of an instance norm.
void group_norm(NodeWriter& n) {
  const int64_t groups = n.attributes<GroupNormAttributes>().groups;
  const std::string grouped = n.add("Reshape", {n.in(0), n.model().integers({0, groups, -1})});
  std::string made = n.add("InstanceNormalization", {grouped, filled(n, 1, {groups}), filled(n, 0, {groups})},
                           {{"epsilon", n.scalar(0).to_double()}});
  made = n.add("Reshape", {made, n.model().shape(n.input(0).dims)});
  std::vector<int64_t> column(static_cast<size_t>(n.rank() - 1), 1);
  column[0] = -1;
  const auto per_channel = [&](size_t i) { return n.add("Reshape", {n.in(i), n.model().integers(column)}); };
  if (n.has(1)) made = n.add("Mul", {made, per_channel(1)});
  if (n.has(2)) made = n.add("Add", {made, per_channel(2)});
  n.give(made);
}

constexpr OperatorRow kLayersRows[] = {
    {.op = "batch_norm", .onnx = "BatchNormalization", .write = batch_norm},
    {.op = "group_norm", .onnx = "InstanceNormalization", .write = group_norm},
    {.op = "layer_norm", .onnx = "LayerNormalization", .write = layer_norm},
    {.op = "log_softmax", .onnx = "LogSoftmax", .write = log_softmax},
    {.op = "softmax", .onnx = "Softmax", .write = softmax},
};

}  // namespace

std::span<const OperatorRow> layer_rows() { return kLayersRows; }

}  // namespace tenon::onnx
