#include "core/interpreter/order.h"

#include <algorithm>

#include "core/ops/attributes.h"
#include "core/ops/op_rows.h"
#include "ep_api/ep_api.h"

namespace tenon {
namespace {

// The stride of `input` along `axis` of a result of `rank` axes to which it broadcasts; 0 if it is repeated there.
int64_t stride_along(const Tensor& input, int32_t axis, int32_t rank, const Dims& dims) {
  const int32_t own = axis - (rank - input.impl()->dims.rank());
  if (own < 0 || (input.impl()->dims[own] == 1 && dims[axis] != 1)) return 0;
  return input.impl()->strides[own];
}

// Compares axis `inner` with axis `outer`, which comes before it. 1: `inner` has the larger strides; -1: the smaller
// ones; 0: no input distinguishes them.
int compare(std::span<const Tensor* const> inputs, const Dims& dims, int32_t inner, int32_t outer) {
  for (const Tensor* input : inputs) {
    if (input == nullptr) continue;
    const int64_t a = stride_along(*input, inner, dims.rank(), dims);
    const int64_t b = stride_along(*input, outer, dims.rank(), dims);
    if (a == 0 || b == 0) continue;
    if (a != b) return a < b ? -1 : 1;
    if (dims[inner] > dims[outer]) return 1;
  }
  return 0;
}

// The strides of a dense tensor of `dims` whose axes lie in `order`, the innermost first. Axes that are not in `order`
// have length 1.
Dims dense_in(std::span<const int32_t> order, const Dims& dims) {
  Dims strides = Dims::filled(dims.rank(), 1);
  int64_t step = 1;
  for (int32_t axis : order) {
    strides[axis] = step;
    step *= std::max<int64_t>(1, dims[axis]);
  }
  return strides;
}

// The axes of [n, c, d..], the innermost first, where channels are last.
struct ChannelOrder {
  explicit ChannelOrder(int32_t rank) {
    axes[count++] = 1;
    for (int32_t axis = rank - 1; axis >= 2; --axis) axes[count++] = axis;
    axes[count++] = 0;
  }
  std::span<const int32_t> span() const { return {axes, static_cast<size_t>(count)}; }
  int32_t axes[EP_MAX_RANK];
  int32_t count = 0;
};

bool has_channels(const Dims& dims) { return dims.rank() >= 3 && dims.rank() <= 5; }

// True if the elements lie along the axes of `order`, the innermost first, gaps allowed.
bool lies_in(std::span<const int32_t> order, const Tensor& tensor) {
  int64_t least = 1;
  for (int32_t axis : order) {
    if (tensor.impl()->dims[axis] == 1) continue;
    if (tensor.impl()->strides[axis] < least) return false;
    least = tensor.impl()->strides[axis] * tensor.impl()->dims[axis];
  }
  return true;
}

// The evidence of an input about the order of channels.
enum class Says : uint8_t { nothing, channels_last, other };

Says order_of(const Tensor& input) {
  if (!has_channels(input.impl()->dims) || input.impl()->elements == 0) return Says::other;
  const bool last = lies_in(ChannelOrder(input.impl()->dims.rank()).span(), input);
  if (input.impl()->contiguous) return last ? Says::nothing : Says::other;
  return last ? Says::channels_last : Says::other;
}

bool wants_channels_last(const OpCall& call, const Dims& dims) {
  if (call.op == &op_row(OpId::cast)) return call.attributes_as<CastAttributes>().channels_last != 0;
  if (call.op->keeps_channels == KeepsChannels::no || !has_channels(dims)) return false;
  const size_t deciding = call.op->keeps_channels == KeepsChannels::of_all_inputs ? call.inputs.size() : 1;
  bool last = false;
  for (const Tensor* input : call.inputs.first(deciding)) {
    const Says says = order_of(*input);
    if (says == Says::other) return false;
    last = last || says == Says::channels_last;
  }
  return last;
}

}  // namespace

Dims channels_last_strides(const Dims& dims) { return dense_in(ChannelOrder(dims.rank()).span(), dims); }

Dims result_strides(const OpCall& call, const Dims& dims) {
  if (keeps_order(call)) return strides_in_order(call.inputs, dims);
  return wants_channels_last(call, dims) ? channels_last_strides(dims) : contiguous_strides(dims);
}

bool keeps_order(const OpCall& call) {
  if (call.op->form == OpForm::elementwise) return true;
  if (call.op != &op_row(OpId::cast)) return false;
  const auto& attributes = call.attributes_as<CastAttributes>();
  return attributes.row_major == 0 && attributes.channels_last == 0;
}

Dims strides_in_order(std::span<const Tensor* const> inputs, const Dims& dims) {
  const auto row_major = [](const Tensor* input) { return input == nullptr || input->impl()->contiguous; };
  if (std::all_of(inputs.begin(), inputs.end(), row_major)) return contiguous_strides(dims);
  int32_t order[EP_MAX_RANK];  // axes, the innermost first
  const int32_t rank = dims.rank();
  for (int32_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  for (int32_t i = 1; i < rank; ++i) {
    for (int32_t at = i, below = i - 1; below >= 0; --below) {
      const int answer = compare(inputs, dims, order[below], order[at]);
      if (answer < 0) break;
      if (answer == 0) continue;
      std::swap(order[below], order[at]);
      at = below;
    }
  }
  return dense_in(std::span(order, static_cast<size_t>(rank)), dims);
}

Dims strides_like(const TensorMeta& output, const Dims& dims) {
  const int32_t rank = dims.rank();
  const int32_t missing = output.dims.rank() - rank;
  int32_t order[EP_MAX_RANK];  // axes of `dims`, the innermost first; axes of length 1 do not matter
  int32_t count = 0;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    if (dims[axis] != 1) order[count++] = axis;
  }
  std::stable_sort(order, order + count,
                   [&](int32_t a, int32_t b) { return output.strides[missing + a] < output.strides[missing + b]; });
  return dense_in(std::span(order, static_cast<size_t>(count)), dims);
}

bool same_layout(const Dims& dims, const Dims& a, const Dims& b) {
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if (dims[axis] != 1 && a[axis] != b[axis]) return false;
  }
  return true;
}

Dims dense_strides(const OpCall& call, const Dims& dims, const TensorMeta& output) {
  return keeps_order(call) ? strides_like(output, dims) : contiguous_strides(dims);
}

}  // namespace tenon
