#include "providers/cuda/convolution/cudnn_problem.h"

#include <algorithm>

#include "providers/cuda/convolution/convolution_tail.h"

namespace tenon::provider::cuda {
namespace {

// Limit for an operand; many of cuDNN's kernels count in 32 bits.
constexpr int64_t most_elements = INT64_C(0x7fffffff);

template <class Attributes>
void read_window(const Attributes& given, CudnnProblem* problem) {
  problem->spatial = given.spatial_rank;
  problem->groups = given.groups;
  std::copy_n(given.stride, most_spatial, problem->stride.begin());
  std::copy_n(given.dilation, most_spatial, problem->dilation.begin());
  std::copy_n(given.pad_low, most_spatial, problem->low.begin());
  std::copy_n(given.pad_high, most_spatial, problem->high.begin());
}

Refusal check_types(const ep_primitive_desc& desc, const CudnnProblem& problem) {
  const int32_t dst = desc.operands[0].dtype;
  const int32_t src = desc.operands[problem.src()].dtype;
  if (!is_floating(src) || dtype_size(src) < 2) return Refusal::because("inputs of %s", dtype_name(src));
  const bool widens = dtype_size(src) == 2 && dst == EP_DTYPE_f32;
  if (dst != src && !widens) return Refusal::because("inputs of %s to %s", dtype_name(src), dtype_name(dst));
  for (uint32_t i = 1; i < desc.operand_count; ++i) {
    const auto index = static_cast<int32_t>(i);
    const bool is_input = index == problem.x || index == problem.w || index == problem.y;
    const int32_t wanted = is_input ? src : dst;
    if (desc.operands[i].dtype != wanted)
      return Refusal::because("operand %u is %s, not %s", i, dtype_name(desc.operands[i].dtype), dtype_name(wanted));
  }
  const int32_t sum = src == EP_DTYPE_f64 ? EP_DTYPE_f64 : EP_DTYPE_f32;
  if (desc.accumulate_dtype != 0 && desc.accumulate_dtype != sum)
    return Refusal::because("accumulation in %s", dtype_name(desc.accumulate_dtype));
  return {};
}

Refusal check_operands(const ep_primitive_desc& desc) {
  const CudnnProblem problem = problem_of(desc);
  if (desc.operand_count < 3 || desc.operands[0].role != EP_ROLE_DST || problem.x < 0 || problem.w < 0 || problem.y < 0)
    return Refusal::because("an operand is missing");
  if (is_dynamic(desc)) return Refusal::because("its sizes are not static");
  if (problem.spatial < 1 || problem.spatial > most_spatial)
    return Refusal::because("%d spatial axes", problem.spatial);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& each = desc.operands[i];
    const int32_t rank = each.role == EP_ROLE_BIAS ? 1 : problem.spatial + 2;
    if (is_scalar(each) || each.rank != rank) return Refusal::because("operand %u has rank %d", i, each.rank);
  }
  for (const int32_t index : problem.operands()) {
    if (Refusal refusal = why_no_operand(desc, index)) return refusal;
  }
  if (problem.result == ConvolutionResult::Y && desc.operands[0].dtype == EP_DTYPE_f64)
    return Refusal::because("f64 products are faster in cuBLASLt");
  return check_types(desc, problem);
}

// cuDNN derives the size of Y from X and the window. The X of a transposed convolution can have rows that no window
// reaches, which cuDNN cannot express.
Refusal check_window(const ep_primitive_desc& desc) {
  const CudnnProblem problem = problem_of(desc);
  const int64_t *x = desc.operands[problem.x].dims, *w = desc.operands[problem.w].dims,
                *y = desc.operands[problem.y].dims;
  if (problem.groups < 1 || x[1] != problem.groups * w[1] || w[0] != y[1] || w[0] % problem.groups != 0 || x[0] != y[0])
    return Refusal::because("%lld groups do not fit its channels", static_cast<long long>(problem.groups));
  for (int32_t axis = 0; axis < problem.spatial; ++axis) {
    const auto at = static_cast<size_t>(axis);
    constexpr int64_t most = INT32_MAX;
    const int64_t stride = problem.stride[at], dilation = problem.dilation[at];
    const int64_t low = problem.low[at], high = problem.high[at];
    if (low < 0 || high < 0) return Refusal::because("a negative border of axis %d", axis);
    if (stride < 1 || dilation < 1) return Refusal::because("a stride or a dilation below 1 along axis %d", axis);
    if (stride > most || dilation > most || low > most || high > most)
      return Refusal::because("a window beyond 32 bits along axis %d", axis);
    const int64_t room = x[axis + 2] + low + high - dilation * (w[axis + 2] - 1) - 1;
    const int64_t positions = room < 0 ? 0 : room / stride + 1;
    if (positions != y[axis + 2]) {
      return Refusal::because("%lld windows fit along axis %d, not %lld", static_cast<long long>(positions), axis,
                              static_cast<long long>(y[axis + 2]));
    }
  }
  return {};
}

}  // namespace

CudnnProblem problem_of(const ep_primitive_desc& desc) {
  CudnnProblem problem{};
  const int32_t src = find_operand(desc, EP_ROLE_SRC);
  if (desc.kind == EP_PRIMITIVE_convolution_weight) {
    read_window(desc.attributes.convolution_weight, &problem);
    problem.result = ConvolutionResult::W;
    problem.x = src;
    problem.w = 0;
    problem.y = find_operand(desc, EP_ROLE_GRADIENT);
    return problem;
  }
  read_window(desc.attributes.convolution, &problem);
  const bool transposed = desc.attributes.convolution.transposed != 0;
  problem.result = transposed ? ConvolutionResult::X : ConvolutionResult::Y;
  problem.x = transposed ? 0 : src;
  problem.w = find_operand(desc, EP_ROLE_WEIGHT);
  problem.y = transposed ? src : 0;
  return problem;
}

int64_t elements_of(const ep_operand_desc& operand) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    // Avoids overflow; beyond most_elements the exact number is not needed.
    if (operand.dims[axis] > most_elements || count > most_elements) return INT64_MAX;
    count *= operand.dims[axis];
  }
  return count;
}

Refusal why_no_operand(const ep_primitive_desc& desc, int32_t index) {
  const ep_operand_desc& operand = desc.operands[index];
  const int64_t count = elements_of(operand);
  if (count == 0) return Refusal::because("operand %d has no elements", index);
  if (count > most_elements) {
    return Refusal::because("operand %d has more than %lld elements", index, static_cast<long long>(most_elements));
  }
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    if (operand.strides[axis] == 0 && operand.dims[axis] != 1)
      return Refusal::because("operand %d is repeated by stride 0", index);
  }
  return {};
}

Refusal why_no_problem(const ep_primitive_desc& desc) {
  if (Refusal refusal = check_operands(desc)) return refusal;
  return check_window(desc);
}

bool lies(const ep_operand_desc& operand, bool channels_last) {
  ep_operand_desc dense = operand;
  set_dense_strides(&dense, channels_last);
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    if (operand.dims[axis] != 1 && operand.strides[axis] != dense.strides[axis]) return false;
  }
  return true;
}

bool prefers_channels_last(const ep_primitive_desc& desc) {
  const CudnnProblem problem = problem_of(desc);
  for (const int32_t index : {problem.src(), problem.x, problem.y, problem.w}) {
    const bool last = lies(desc.operands[index], true);
    if (last != lies(desc.operands[index], false)) return last;
  }
  return false;
}

CudnnWindow window_of(const CudnnProblem& problem) {
  const int32_t spatial = std::max(problem.spatial, 2);
  CudnnWindow made{spatial, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}};
  const int32_t first = spatial - problem.spatial;
  for (int32_t axis = 0; axis < problem.spatial; ++axis) {
    const auto to = static_cast<size_t>(first + axis), from = static_cast<size_t>(axis);
    made.stride[to] = problem.stride[from];
    made.dilation[to] = problem.dilation[from];
    made.low[to] = problem.low[from];
    made.high[to] = problem.high[from];
  }
  return made;
}

}  // namespace tenon::provider::cuda
