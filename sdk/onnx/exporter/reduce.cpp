// Reductions, scans and sorting.
#include "core/ops/attributes.h"
#include "sdk/onnx/exporter/operators.h"

namespace tenon::onnx {
namespace {

std::vector<int64_t> axes_of(const NodeWriter& n) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < n.rank(); ++axis) {
    if ((n.attributes<ReduceAttributes>().axes >> axis & 1) != 0) axes.push_back(axis);
  }
  return axes;
}

// Applies `op` to `x` over the axes of the node. ReduceSum takes the axes as an input, the others as an attribute.
std::string reduced(NodeWriter& n, std::string_view op, const std::string& x) {
  const std::vector<int64_t> axes = axes_of(n);
  const int64_t keep = n.attributes<ReduceAttributes>().keep_dims != 0 ? 1 : 0;
  if (n.rank() == 0) return n.add(op, {x}, {{"keepdims", keep}});
  if (axes.empty()) n.refuse("it reduces no axis.");
  if (op == "ReduceSum") return n.add(op, {x, n.model().integers(axes)}, {{"keepdims", keep}});
  return n.add(op, {x}, {{"axes", axes}, {"keepdims", keep}});
}

template <const char* kOp>
void reduce(NodeWriter& n) {
  n.give(reduced(n, kOp, n.in(0)));
}

// Reduces bools, which ONNX can only reduce as integers.
void reduce_bool(NodeWriter& n, std::string_view op) {
  const std::string number = n.cast(n.cast(n.in(0), n.dtype(), DType::boolean), DType::boolean, DType::i32);
  n.give(n.cast(reduced(n, op, number), DType::i32, DType::boolean));
}
void any(NodeWriter& n) { reduce_bool(n, "ReduceMax"); }
void all(NodeWriter& n) { reduce_bool(n, "ReduceMin"); }

void extremum(NodeWriter& n, std::string_view op) {
  if (n.dtype() == DType::boolean) return reduce_bool(n, op);
  n.give(reduced(n, op, n.in(0)));
}
void amax(NodeWriter& n) { extremum(n, "ReduceMax"); }
void amin(NodeWriter& n) { extremum(n, "ReduceMin"); }

void nansum(NodeWriter& n) {
  const std::string number = n.add("Equal", {n.in(0), n.in(0)});
  n.give(reduced(n, "ReduceSum", n.add("Where", {number, n.in(0), n.number(0)})));
}

void arg(NodeWriter& n, std::string_view op) {
  const auto& at = n.attributes<ArgReduceAttributes>();
  n.give(n.add(
      op, {n.in(0)},
      {{"axis", int64_t{at.axis}}, {"keepdims", int64_t{at.keep_dims}}, {"select_last_index", int64_t{at.last}}}));
}
void argmax(NodeWriter& n) { arg(n, "ArgMax"); }
void argmin(NodeWriter& n) { arg(n, "ArgMin"); }

void cumsum(NodeWriter& n) {
  const ep_scan_attributes& at = n.attributes<ScanAttributes>().scan;
  n.give(n.add("CumSum", {n.in(0), n.model().integer(at.axis)},
               {{"exclusive", int64_t{at.exclusive}}, {"reverse", int64_t{at.reverse}}}));
}

void ordered(NodeWriter& n, const std::string& count, int64_t axis, bool largest, bool values) {
  const std::vector<std::string> made = n.model().nodes(
      "TopK", {n.in(0), count}, {{"axis", axis}, {"largest", int64_t{largest ? 1 : 0}}, {"sorted", int64_t{1}}}, 2);
  n.give(made[values ? 0 : 1]);
  if (values) n.give(made[1], 1);
}
void sort_by(NodeWriter& n, bool values) {
  const ep_sort_attributes& at = n.attributes<SortAttributes>().sort;
  if (n.rank() == 0) n.refuse("ONNX sorts along an axis, and a tensor of rank 0 has none.");
  ordered(n, n.model().size(n.input(0).dims[at.axis]), at.axis, at.descending != 0, values);
}
void sort(NodeWriter& n) { sort_by(n, true); }
void argsort(NodeWriter& n) { sort_by(n, false); }
void topk(NodeWriter& n) {
  const auto& at = n.attributes<TopKAttributes>();
  ordered(n, n.model().size(n.size_of(at.k)), at.top_k.axis, at.top_k.largest != 0, true);
}

constexpr char kSum[] = "ReduceSum", kProd[] = "ReduceProd", kMean[] = "ReduceMean", kL1[] = "ReduceL1",
               kL2[] = "ReduceL2", kSumSquare[] = "ReduceSumSquare", kLogSum[] = "ReduceLogSum";

constexpr OperatorRow kReduceRows[] = {
    {.op = "all", .onnx = "ReduceMin", .write = all},
    {.op = "amax", .onnx = "ReduceMax", .write = amax},
    {.op = "amin", .onnx = "ReduceMin", .write = amin},
    {.op = "any", .onnx = "ReduceMax", .write = any},
    {.op = "argmax", .onnx = "ArgMax", .write = argmax},
    {.op = "argmin", .onnx = "ArgMin", .write = argmin},
    {.op = "argsort", .onnx = "TopK", .write = argsort},
    {.op = "cumsum", .onnx = "CumSum", .write = cumsum},
    {.op = "l1_norm", .onnx = kL1, .write = reduce<kL1>},
    {.op = "l2_norm", .onnx = kL2, .write = reduce<kL2>},
    {.op = "log_sum", .onnx = kLogSum, .write = reduce<kLogSum>},
    {.op = "mean", .onnx = kMean, .write = reduce<kMean>},
    {.op = "nansum", .onnx = "ReduceSum", .write = nansum},
    {.op = "prod", .onnx = kProd, .write = reduce<kProd>},
    {.op = "sort", .onnx = "TopK", .write = sort},
    {.op = "sum", .onnx = kSum, .write = reduce<kSum>},
    {.op = "sum_square", .onnx = kSumSquare, .write = reduce<kSumSquare>},
    {.op = "topk", .onnx = "TopK", .write = topk},
};

}  // namespace

std::span<const OperatorRow> reduce_rows() { return kReduceRows; }

}  // namespace tenon::onnx
