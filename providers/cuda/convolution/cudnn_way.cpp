#include "providers/cuda/convolution/cudnn_way.h"

#include <algorithm>

#include "providers/cuda/convolution/convolution_tail.h"

namespace tenon::provider::cuda {
namespace {

constexpr int64_t first_virtual_id = zeros_id + 1;

bool is_relu(const ep_epilogue& epilogue) { return epilogue.arity == 1 && epilogue.op == EP_UNARY_relu; }

// The number of the tensor that the first epilogue adds; -1 if it adds none.
int32_t added_tensor(const ep_primitive_desc& desc) {
  if (desc.epilogue_count == 0) return -1;
  const ep_epilogue& first = desc.epilogues[0];
  if (first.arity != 2 || first.op != EP_BINARY_add || first.role == 0) return -1;
  return find_operand(desc, first.role);
}

// True if cuDNN has an engine for the tail. It fuses an added tensor, a bias and a relu.
bool can_fuse(const ep_primitive_desc& desc) {
  const int32_t bias = find_operand(desc, EP_ROLE_BIAS), added = added_tensor(desc);
  if (desc.kind != EP_PRIMITIVE_convolution || desc.attributes.convolution.transposed != 0) return false;
  if (!has_tail(desc) || desc.operands[0].dtype == EP_DTYPE_f64) return false;
  if (bias >= 0 && desc.operands[bias].strides[0] != 1 && desc.operands[bias].dims[0] != 1) return false;
  if (added >= 0 && why_no_operand(desc, added)) return false;
  const uint32_t left = desc.epilogue_count - (added >= 0 ? 1 : 0);
  return left == 0 || (left == 1 && is_relu(desc.epilogues[desc.epilogue_count - 1]));
}

// A tensor with at least two spatial axes, the minimum of cuDNN.
CudnnTensor tensor(const ep_operand_desc& dense, int64_t id, bool is_virtual) {
  const int32_t axes = std::max(dense.rank, 4);
  CudnnTensor made{id, dense.dtype, axes, {}, {}, is_virtual};
  const int32_t added = axes - dense.rank;
  for (int32_t axis = 0; axis < axes; ++axis) {
    const auto at = static_cast<size_t>(axis);
    const int32_t from = axis < 2 ? axis : axis - added;
    const bool is_there = axis < 2 || from >= 2;
    made.dims[at] = is_there ? dense.dims[from] : 1;
    made.strides[at] = is_there ? dense.strides[from] : dense.strides[2] * dense.dims[2];
  }
  return made;
}

}  // namespace

bool has_tail(const ep_primitive_desc& desc) {
  return find_operand(desc, EP_ROLE_BIAS) >= 0 || desc.epilogue_count != 0;
}

std::vector<Way> ways_of(const ep_primitive_desc& desc) {
  const bool given = prefers_channels_last(desc);
  const bool narrow = dtype_size(desc.operands[problem_of(desc).src()].dtype) == 2;
  const bool widens = narrow && desc.operands[0].dtype == EP_DTYPE_f32;
  std::vector<Way> ways;
  if (can_fuse(desc) && !widens) {
    ways.push_back({given, true, false});
    if (narrow) ways.push_back({!given, true, false});
  }
  const bool widened = narrow && (widens || has_tail(desc));
  ways.push_back({given, false, widened});
  ways.push_back({!given, false, widened});
  return ways;
}

WayGraph::WayGraph(Cudnn& library, const ep_primitive_desc& desc, const Way& way)
    : desc_(desc), problem_(problem_of(desc)), way_(way), graph_(library) {
  const bool f64 = desc_.operands[problem_.x].dtype == EP_DTYPE_f64;
  const size_t x = operand(problem_.x), w = operand(problem_.w);
  const size_t y = way_.fused ? between() : operand(problem_.y);
  graph_.convolve(problem_.result, window_of(problem_), f64 ? EP_DTYPE_f64 : EP_DTYPE_f32, x, w, y);
  if (way_.fused) add_tail(y);
}

ep_operand_desc WayGraph::dense(int32_t index) const {
  ep_operand_desc operand = desc_.operands[index];
  if (index != 0 && way_.widened) operand.dtype = EP_DTYPE_f32;
  if (index == 0 && !way_.fused) operand.dtype = ConvolutionTail::product_of(desc_, way_.channels_last).dtype;
  set_dense_strides(&operand, way_.channels_last);
  return operand;
}

size_t WayGraph::operand(int32_t index) {
  const ep_operand_desc& given = desc_.operands[index];
  const ep_operand_desc made = dense(index);
  // A result of another type becomes a product in the workspace, in the graph's order of axes.
  const bool is_product = index == 0 && made.dtype != given.dtype;
  const bool differs = made.dtype != given.dtype || !lies(given, way_.channels_last);
  if (differs && !is_product) staged_.push_back(index);
  operands_.push_back(index);
  return graph_.add(tensor(made, id_of(index), false));
}

// A tensor with the result's dims between two operations. It is never rounded.
size_t WayGraph::between() {
  ep_operand_desc made = dense(0);
  made.dtype = EP_DTYPE_f32;
  return graph_.add(tensor(made, first_virtual_id + virtual_++, true));
}

// The bias, or zeros if there is none.
size_t WayGraph::bias() {
  const int32_t index = find_operand(desc_, EP_ROLE_BIAS);
  ep_operand_desc made = desc_.operands[0];
  for (int32_t axis = 0; axis < made.rank; ++axis) {
    if (axis != 1) made.dims[axis] = 1;
  }
  set_dense_strides(&made, way_.channels_last);
  if (index >= 0)
    operands_.push_back(index);
  else
    zeros_ = part_bytes(made.dims[1], dtype_size(made.dtype));
  return graph_.add(tensor(made, index >= 0 ? id_of(index) : zeros_id, false));
}

void WayGraph::add_tail(size_t value) {
  const int32_t added_index = added_tensor(desc_);
  const bool relu = desc_.epilogue_count > (added_index >= 0 ? 1U : 0U);
  if (added_index >= 0) {
    const size_t added = operand(added_index), to = between();
    graph_.sum(value, added, to);
    value = to;
  }
  const size_t given = bias(), to = relu ? between() : operand(0);
  graph_.sum(value, given, to);
  if (relu) graph_.relu(to, operand(0));
}

}  // namespace tenon::provider::cuda
