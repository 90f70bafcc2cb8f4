// Operators that select elements by index.
#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

TensorList translate_gather(NodeContext& n) { return {gather_slices(n.input(0), n.axis(0, n.rank(0)), n.input(1))}; }

TensorList gather_elements(NodeContext& n) { return {gather(n.input(0), n.axis(0, n.rank(0)), n.input(1))}; }

// The position along an axis of `length` elements that each index means; a negative index counts from the end. An index
// outside the axis is a fault of a gather, whose source is a single zero that is repeated `length` times.
Tensor positions_of(NodeContext& n, const Tensor& index, int64_t length) {
  const Tensor zero = gather_slices(expand(zeros(1, DType::i64, n.device()), length), 0, index);
  return add(where(lt(index, Scalar(0)), add(index, Scalar(length)), index), zero);
}

// A row of indices [.., k] names a position along the k axes after the batch axes. The k indices become one index into
// the flattened axes. Each index is checked against its own axis: by positions_of, or by the gather if there is only
// one axis.
TensorList gather_nd(NodeContext& n) {
  const Tensor& x = n.input(0);
  const Tensor& indices = n.input(1);
  const int64_t batch = n.integer("batch_dims", 0);
  const int64_t k = indices.rank() == 0 ? 0 : indices.dim(-1);
  if (indices.rank() == 0 || batch < 0 || k < 1 || batch >= indices.rank() || batch + k > x.rank()) {
    n.invalid(
        fmt::format("indices of shape {} with {} batch axes do not fit shape {}", indices.dims(), batch, x.dims()));
  }
  const int64_t rank = indices.rank() - 1 + x.rank() - batch - k;
  if (rank > EP_MAX_RANK)
    n.invalid(fmt::format("the result would have rank {}; at most {} is possible", rank, EP_MAX_RANK));
  const SymDim outer = n.product(0, 0, batch), positions = n.product(0, batch, batch + k);
  const SymDim inner = n.product(0, batch + k, x.rank()), rows = n.product(1, batch, indices.rank() - 1);
  Tensor flat;
  for (int64_t i = 0; i < k; ++i) {
    const int64_t length = x.dim(batch + i);
    const Tensor column = select(indices, -1, i);
    const Tensor position = k == 1 ? column : positions_of(n, column, length);
    flat = flat.defined() ? add(mul(flat, Scalar(length)), position) : position;
  }
  SymDims result;
  for (int32_t i = 0; i + 1 < indices.rank(); ++i) result.push_back(size_at(indices, i));
  for (int32_t i = static_cast<int32_t>(batch + k); i < x.rank(); ++i) result.push_back(size_at(x, i));
  const Tensor index = expand(reshape(flat, SizeList{outer, rows, 1}), SizeList{outer, rows, inner});
  return {reshape(gather(reshape(x, SizeList{outer, positions, inner}), 1, index), SizeList(result))};
}

TensorList translate_one_hot(NodeContext& n) {
  const Tensor& indices = n.input(0);
  const int64_t depth = n.scalar(1).to_int();
  if (depth < 1) n.invalid(fmt::format("its depth is {}; it must be at least 1", depth));
  const Tensor& values = n.input(2);
  if (values.rank() != 1 || values.elements() != 2)
    n.invalid(fmt::format("its values must be two numbers, not shape {}", values.dims()));
  const int32_t rank = indices.rank() + 1;
  if (rank > EP_MAX_RANK)
    n.invalid(fmt::format("the result would have rank {}; at most {} is possible", rank, EP_MAX_RANK));
  const int64_t axis = n.axis(-1, rank);
  Dims shape = Dims::filled(rank, 1);
  shape[axis] = depth;
  const Tensor positions = reshape(n.positions(depth), shape);
  const Tensor whole = cast(indices, DType::i64);
  const Tensor index = unsqueeze(where(lt(whole, Scalar(0)), add(whole, Scalar(depth)), whole), axis);
  return {where(eq(index, positions), select(values, 0, 1), select(values, 0, 0))};
}

// The sum of all elements up to each one, as a product with a triangle of ones.
TensorList cum_sum(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t axis = n.normalise_axis(n.scalar(1).to_int(), x.rank());
  const int64_t length = x.dim(axis);
  const bool exclusive = n.flag("exclusive", false), reverse = n.flag("reverse", false);
  if (length > 4096) n.unsupported(fmt::format("it sums along {} elements; at most 4096 are possible", length));
  const Tensor from = reshape(n.positions(length), {length, 1});
  const Tensor to = reshape(from, {1, length});
  const Tensor used = reverse ? (exclusive ? gt(from, to) : ge(from, to)) : (exclusive ? lt(from, to) : le(from, to));
  const Tensor last = transpose(x, axis, x.rank() - 1);
  const Tensor sums = sum(where(used, unsqueeze(last, -1), Scalar(0)), -2, false, x.dtype());
  return {transpose(sums, axis, x.rank() - 1)};
}

TensorList reverse_sequence(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t batch = n.integer("batch_axis", 1), time = n.integer("time_axis", 0);
  if (x.rank() < 2 || batch == time || batch < 0 || batch > 1 || time < 0 || time > 1)
    n.invalid("its axes must be 0 and 1");
  const int64_t length = x.dim(time);
  Dims along = Dims::filled(x.rank(), 1), across = Dims::filled(x.rank(), 1);
  along[time] = length;
  across[batch] = x.dim(batch);
  const Tensor positions = reshape(n.positions(length), along);
  const Tensor lengths = reshape(cast(n.input(1), DType::i64), across);
  const Tensor mirrored = sub(sub(lengths, Scalar(1)), positions);
  return {gather(x, time, expand(where(lt(positions, lengths), mirrored, positions), SizeList(sizes(x))))};
}

constexpr Translator kRows[] = {
    {"CumSum", 11, cum_sum},     {"Gather", 1, translate_gather},  {"GatherElements", 11, gather_elements},
    {"GatherND", 11, gather_nd}, {"OneHot", 9, translate_one_hot}, {"ReverseSequence", 10, reverse_sequence},
};

}  // namespace

std::span<const Translator> index_translators() { return kRows; }

}  // namespace tenon::onnx
