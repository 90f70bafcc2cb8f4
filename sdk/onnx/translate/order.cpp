#include "sdk/onnx/translate/order.h"

#include "core/ops/functors/positions.h"
#include "core/ops/op_call.h"
#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "primitives/text/format.h"

namespace tenon::onnx {
namespace {

// Input `i`, whose elements decide the size of a result.
const Tensor& deciding(NodeContext& n, size_t i) {
  const Tensor& tensor = n.input(i);
  if (!current_interpreter().host_value_known(tensor)) throw UnknownValue(n.node().inputs[i]);
  return tensor;
}

int64_t scanned_axis(NodeContext& n) { return n.normalise_axis(n.scalar(1).to_int(), n.rank(0)); }

// The attribute `reduction`: its name and the EP_SCATTER_* value.
struct Reduction {
  std::string_view name, word;
  int32_t how;
};
constexpr Reduction kReductions[] = {{"none", "none", EP_SCATTER_ASSIGN},
                                     {"add", "sum", EP_SCATTER_ADD},
                                     {"mul", "prod", EP_SCATTER_MUL},
                                     {"max", "amax", EP_SCATTER_MAX},
                                     {"min", "amin", EP_SCATTER_MIN}};

const Reduction& reduction(NodeContext& n) {
  const std::string given = n.text("reduction", "none");
  for (const Reduction& row : kReductions) {
    if (row.name == given) return row;
  }
  n.unsupported(fmt::format("its reduction is '{}'; none, add, mul, max and min are known", given));
}

// Refuses coordinates that do not fit input 0, or with fewer than `least` numbers per position.
void require_coordinates(NodeContext& n, int64_t batch, int64_t least) {
  const Tensor& x = n.input(0);
  const Tensor& indices = n.input(1);
  const int64_t count = indices.rank() == 0 ? 0 : indices.dim(-1);
  if (batch < 0 || count < least || batch >= indices.rank() || batch + count > x.rank()) {
    n.invalid(
        fmt::format("indices of shape {} with {} batch axes do not fit shape {}", indices.dims(), batch, x.dims()));
  }
  const int64_t rank = indices.rank() - 1 + x.rank() - batch - count;
  if (rank > EP_MAX_RANK)
    n.invalid(fmt::format("the result would have rank {}; at most {} is possible", rank, EP_MAX_RANK));
}

// Handles positions without coordinates: each takes all of input 0 behind the batch axes.
Tensor without_coordinates(NodeContext& n, int64_t batch) {
  const Tensor& x = n.input(0);
  const Dims& indices = n.dims(1);
  Dims once, dims;
  for (int32_t i = 0; i + 1 < indices.rank(); ++i) {
    if (i < batch && indices[i] != x.dims()[i])
      n.invalid(fmt::format("indices of shape {} do not have the {} batch axes of shape {}", indices, batch, x.dims()));
    once.push_back(i < batch ? x.dims()[i] : 1);
    dims.push_back(indices[i]);
  }
  for (int32_t i = static_cast<int32_t>(batch); i < x.rank(); ++i) {
    once.push_back(x.dims()[i]);
    dims.push_back(x.dims()[i]);
  }
  return expand(reshape(x, once), dims);
}

}  // namespace

TensorList translate_cum_sum(NodeContext& n) {
  const Tensor& x = n.input(0);
  return {cumsum(x, scanned_axis(n), x.dtype(), n.flag("exclusive", false), n.flag("reverse", false))};
}

TensorList translate_cum_prod(NodeContext& n) {
  const Tensor& x = n.input(0);
  return {cumprod(x, scanned_axis(n), x.dtype(), n.flag("exclusive", false), n.flag("reverse", false))};
}

TensorList translate_top_k(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t axis = n.axis(-1, x.rank());
  const int64_t k = n.input_count() > 1 ? n.scalar(1).to_int() : n.integer("k", 0);
  const auto [values, positions] = topk(x, k, axis, n.flag("largest", true));
  return {values, positions};
}

TensorList translate_unique(NodeContext& n) {
  const Tensor& x = deciding(n, 0);
  std::optional<int64_t> axis;
  if (n.find("axis") != nullptr) axis = n.axis(0, x.rank());
  const std::string_view order = n.flag("sorted", true) ? "sorted" : "first";
  const TensorList padded = unique_padded(x, axis, order, true, true, true);
  const int64_t count = padded[1].item().to_int();
  return {narrow(padded[0], axis.value_or(0), 0, count), narrow(padded[2], 0, 0, count), padded[3],
          narrow(padded[4], 0, 0, count)};
}

TensorList translate_non_zero(NodeContext& n) { return {contiguous(transpose(nonzero(deciding(n, 0)), 0, 1))}; }

TensorList translate_compress(NodeContext& n) {
  const Tensor& condition = deciding(n, 1);
  const Tensor positions = reshape(nonzero(condition), -1).to(n.device());
  if (n.find("axis") == nullptr) return {take(n.input(0), positions)};
  return {index_select(n.input(0), n.axis(0, n.rank(0)), positions)};
}

TensorList translate_gather_nd(NodeContext& n) {
  const int64_t batch = n.integer("batch_dims", 0);
  require_coordinates(n, batch, 0);
  if (n.dims(1).back() == 0) return {without_coordinates(n, batch)};
  return {gather_nd(n.input(0), n.input(1), batch)};
}

TensorList translate_scatter_nd(NodeContext& n) {
  require_coordinates(n, 0, 1);
  return {scatter_nd(n.input(0), n.input(1), n.input(2), reduction(n).word)};
}

TensorList translate_scatter_elements(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t axis = n.axis(0, x.rank());
  if (x.rank() < 1 || n.rank(1) != x.rank() || n.rank(2) != x.rank())
    n.invalid("its inputs must have one rank of at least 1");
  return {functors::scatter_at("scatter", EP_GATHER_ELEMENTS, reduction(n).how, x, static_cast<int32_t>(axis),
                               n.input(1), n.input(2))};
}

TensorList translate_one_hot(NodeContext& n) {
  const Tensor& indices = n.input(0);
  const int64_t depth = n.scalar(1).to_int();
  if (depth < 1) n.invalid(fmt::format("its depth is {}; it must be at least 1", depth));
  const Tensor& values = n.input(2);
  const int32_t rank = indices.rank() + 1;
  if (rank > EP_MAX_RANK)
    n.invalid(fmt::format("the result would have rank {}; at most {} is possible", rank, EP_MAX_RANK));
  const int64_t axis = n.axis(-1, rank);
  const Tensor whole = is_integer(indices.dtype()) ? indices : cast(indices, DType::i64);
  const Tensor chosen = one_hot_values(whole, depth, axis, Scalar(0), Scalar(1), DType::boolean);
  return {where(chosen, select(values, 0, 1), select(values, 0, 0))};
}

}  // namespace tenon::onnx
