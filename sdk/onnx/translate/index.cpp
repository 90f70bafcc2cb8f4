// Operators that select elements by index.
#include "core/ops/functors/positions.h"
#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/order.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

TensorList translate_gather(NodeContext& n) { return {gather_slices(n.input(0), n.axis(0, n.rank(0)), n.input(1))}; }

TensorList gather_elements(NodeContext& n) {
  const auto axis = static_cast<int32_t>(n.axis(0, n.rank(0)));
  if (n.rank(0) < 1 || n.rank(1) != n.rank(0)) n.invalid("its inputs must have one rank of at least 1");
  if (size_at(n.input(0), axis) == 0 && !is_empty(n.input(1))) n.invalid("an axis of length 0 has no elements");
  return {functors::gather_at(n.input(0), axis, n.input(1))};
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
  const Tensor lengths = reshape(n.within(1, 0, length), across);
  const Tensor mirrored = sub(sub(lengths, Scalar(1)), positions);
  return {gather(x, time, expand(where(lt(positions, lengths), mirrored, positions), SizeList(sizes(x))))};
}

constexpr Translator kIndexRows[] = {
    {.op_type = "Compress", .since = 9, .translate = translate_compress},
    {.op_type = "CumProd", .since = 26, .translate = translate_cum_prod},
    {.op_type = "CumSum", .since = 11, .translate = translate_cum_sum},
    {.op_type = "Gather", .since = 1, .translate = translate_gather},
    {.op_type = "GatherElements", .since = 11, .translate = gather_elements},
    {.op_type = "GatherND", .since = 11, .translate = translate_gather_nd},
    {.op_type = "NonZero", .since = 9, .translate = translate_non_zero},
    {.op_type = "OneHot", .since = 9, .translate = translate_one_hot},
    {.op_type = "ReverseSequence", .since = 10, .translate = reverse_sequence},
    {.op_type = "Scatter", .since = 9, .translate = translate_scatter_elements},
    {.op_type = "ScatterElements", .since = 11, .translate = translate_scatter_elements},
    {.op_type = "ScatterND", .since = 11, .translate = translate_scatter_nd},
    {.op_type = "TopK", .since = 1, .translate = translate_top_k},
    {.op_type = "Unique", .since = 11, .translate = translate_unique},
};

}  // namespace

std::span<const Translator> index_translators() { return kIndexRows; }

}  // namespace tenon::onnx
