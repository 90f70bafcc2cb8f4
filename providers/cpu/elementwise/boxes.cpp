#include "providers/cpu/elementwise/boxes.h"

#include <algorithm>
#include <cstring>

#include "providers/cpu/elementwise/scalar.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t longest_short_axis = 512;
// Rows of at least this many bytes that need no copies go to the kernel one by one.
constexpr int64_t shortest_direct_row = 128;

// The strides of contiguous elements.
void dense_strides(int32_t rank, const int64_t* dims, int64_t* strides) {
  int64_t step = 1;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step *= dims[axis];
  }
}

}  // namespace

BoxCopy::BoxCopy(int32_t size, int32_t rank, const int64_t* dims, const int64_t* dst_strides,
                 const int64_t* src_strides, SimdLevel level)
    : level_(level), rows_(short_rows(level, size)), elements_(move_elements(size)) {
  copy_.size = size;
  copy_.rank = 1;
  copy_.dims[0] = 1;  // one step along the first axis; run() multiplies by the number of steps
  copy_.dst_strides[0] = dst_strides[0];
  copy_.src_strides[0] = src_strides[0];
  for (int32_t axis = 1; axis < rank; ++axis) {
    if (dims[axis] == 1) continue;
    const int32_t last = copy_.rank - 1;
    const bool joins = copy_.dst_strides[last] == dims[axis] * dst_strides[axis] &&
                       copy_.src_strides[last] == dims[axis] * src_strides[axis];
    const int32_t to = joins ? last : copy_.rank++;
    copy_.dims[to] = joins ? copy_.dims[to] * dims[axis] : dims[axis];
    copy_.dst_strides[to] = dst_strides[axis];
    copy_.src_strides[to] = src_strides[axis];
  }
  per_step_ = copy_.dims[0];
}

void BoxCopy::run(char* dst, const char* src, int64_t n) const {
  const int64_t steps = n * per_step_;
  if (copy_.rank == 1) return elements_(dst, copy_.dst_strides[0], src, copy_.src_strides[0], steps);
  if (copy_.rank == 2 && copy_.dst_strides[1] == 1) {
    const int64_t length = copy_.dims[1];
    if (copy_.src_strides[1] == 1)
      return rows_.move(dst, copy_.dst_strides[0], src, copy_.src_strides[0], steps, length);
    if (copy_.src_strides[1] == 0 && copy_.dst_strides[0] == length)
      return rows_.repeat(dst, src, copy_.src_strides[0], steps, length);
  }
  StridedCopy copy = copy_;
  copy.dims[0] = steps;
  strided_copy(copy, dst, src, level_, 1);
}

bool Boxes::suit(const MapPlan& plan, const MapShape& shape) {
  const int32_t last = shape.rank - 1;
  if (last == 0 || shape.dims[last] > longest_short_axis) return false;
  for (int32_t i = 0; i < plan.count; ++i) {
    const MapOperand& operand = plan.operands[i];
    const bool repeats = operand.scalar || (i > 0 && shape.strides[i][last] == 0);
    if (!operand.direct || !(repeats ? plan.takes_single : shape.strides[i][last] == 1)) return true;
  }
  return shape.dims[last] * plan.operands[0].size < shortest_direct_row;
}

Boxes::Boxes(const MapPlan& plan, const MapShape& shape, const ep_launch& launch, const MapContext& context,
             SimdLevel level, StreamCopy stream)
    : plan_(plan), shape_(shape), context_(context), stream_(stream) {
  for (int32_t i = 0; i < plan.count; ++i)
    most_ = std::min<int64_t>(most_, block_bytes / std::max(plan.operands[i].size, plan.operands[i].block_size));
  axis_ = shape.rank - 1;
  while (axis_ > 0 && tail_ * shape.dims[axis_] <= most_) tail_ *= shape.dims[axis_--];
  steps_ = std::min(most_ / tail_, shape.dims[axis_]);
  const int32_t rank = shape.rank - axis_;
  one_result_ = true;
  for (int32_t i = 1; i < plan.count; ++i) {
    const int64_t* const strides = shape.strides[i];
    const auto repeats = [](int64_t stride) { return stride == 0; };
    constant_[i] = plan.operands[i].scalar || std::all_of(strides, strides + axis_ + 1, repeats);
    one_result_ = one_result_ && constant_[i];
  }
  int64_t dims[EP_MAX_RANK], varying[EP_MAX_RANK], strides[EP_MAX_RANK], result_strides[EP_MAX_RANK];
  for (int32_t axis = 0; axis < rank; ++axis) {
    bool varies = one_result_;
    for (int32_t i = 1; i < plan.count; ++i) {
      varies = varies || (!plan.operands[i].scalar && shape.strides[i][axis_ + axis] != 0);
    }
    dims[axis] = axis == 0 ? steps_ : shape.dims[axis_ + axis];
    varying[axis] = varies ? dims[axis] : 1;
    if (axis == 0) one_step_ = !varies;
    if (axis > 0) computed_ *= varying[axis];
  }
  dense_strides(rank, varying, strides);
  for (int32_t i = 0; i < plan.count; ++i) {
    const MapOperand& operand = plan.operands[i];
    if (operand.scalar) continue;
    base_[i] = address_of(launch.operands[i]);
    if (i > 0) gathers_[i] = BoxCopy(operand.size, rank, varying, strides, shape.strides[i] + axis_, level);
  }
  if (rank == 2 && !one_step_ && !one_result_) compute_gaps(dims[1]);
  for (int32_t axis = 0; axis < rank; ++axis) {
    result_strides[axis] = varying[axis] != dims[axis] ? 0 : axis == 0 ? computed_ : strides[axis];
  }
  dense_strides(rank, dims, strides);
  const int32_t size = plan.operands[0].size;
  repeats_ = BoxCopy(size, rank, dims, strides, result_strides, level);
  scatters_ = BoxCopy(size, rank, dims, shape.strides[0] + axis_, result_strides, level);
  dst_dense_ = BoxCopy(size, rank, dims, shape.strides[0] + axis_, strides, level).dense();
  for (int32_t i = 1; i < plan.count; ++i) {
    if (plan.operands[i].scalar) fill_scalar(i, launch.scalars[i - 1]);
  }
}

// Computes the gaps between rows too if several sources have the same, small ones. A kernel that can fail must not see
// them.
void Boxes::compute_gaps(int64_t length) {
  int64_t stride = 0;
  int32_t sources = 0;
  for (int32_t i = 1; i < plan_.count; ++i) {
    if (plan_.operands[i].scalar) continue;
    const int64_t own = gathers_[i].row_stride();
    if (own == 0 || (stride != 0 && own != stride)) return;
    stride = own;
    ++sources;
  }
  if (sources < 2 || plan_.fault_operand != 0 || stride < length || 2 * stride > 3 * length || stride > most_) return;
  steps_ = std::min(steps_, most_ / stride);
  computed_ = stride;
  gap_ = stride - length;
}

// Makes the block of a scalar. If the kernel can repeat it, one element is enough.
void Boxes::fill_scalar(int32_t i, const ep_scalar& scalar) {
  const MapOperand& operand = plan_.operands[i];
  char* const block = converted_[i];
  write_scalar(scalar, operand.direct ? operand.dtype : operand.block_dtype, block);
  ready_[i] = block;
  if ((plan_.takes_single || plan_.takes_scalar) && context_.single == 0)
    context_.single = static_cast<uint8_t>(1 << (i - 1));
  else
    move_elements(operand.block_size)(block, 1, block, 0, count(steps_));
}

int64_t Boxes::units() const {
  int64_t units = (shape_.dims[axis_] + steps_ - 1) / steps_;
  for (int32_t axis = 0; axis < axis_; ++axis) units *= shape_.dims[axis];
  return units;
}

void Boxes::run(int64_t begin, int64_t end) {
  const int64_t pieces = (shape_.dims[axis_] + steps_ - 1) / steps_;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t start = unit % pieces * steps_;
    int64_t offsets[map_max_operands] = {};
    const auto step = [&](int32_t axis, int64_t steps) {
      for (int32_t i = 0; i < plan_.count; ++i) {
        if (!plan_.operands[i].scalar) offsets[i] += steps * shape_.strides[i][axis];
      }
    };
    step(axis_, start);
    int64_t rest = unit / pieces;
    for (int32_t axis = axis_ - 1; axis >= 0 && rest > 0; --axis) {
      step(axis, rest % shape_.dims[axis]);
      rest /= shape_.dims[axis];
    }
    run_box(offsets, std::min(steps_, shape_.dims[axis_] - start));
  }
  if (stream_ != nullptr) store_fence();
}

void Boxes::run_box(const int64_t* offsets, int64_t n) {
  char* const to = base_[0] + offsets[0] * plan_.operands[0].size;
  if (dst_dense_ && repeats_.dense() && stream_ == nullptr && !one_result_) return compute(offsets, n, to);
  if (!finished_) compute(offsets, one_result_ ? steps_ : n, blocks_[0]);
  finished_ = one_result_;
  const int64_t bytes = n * tail_ * plan_.operands[0].size;
  const bool streams = stream_ != nullptr && (reinterpret_cast<uintptr_t>(to) | static_cast<uint64_t>(bytes)) % 4 == 0;
  if (!dst_dense_ || !streams) return scatters_.run(to, blocks_[0], n);
  const char* results = blocks_[0];
  if (!repeats_.dense()) {
    repeats_.run(converted_[0], results, n);
    results = converted_[0];
  }
  stream_(reinterpret_cast<float*>(to), reinterpret_cast<const float*>(results), bytes / 4);
}

// Writes the results of a box to `to`.
void Boxes::compute(const int64_t* offsets, int64_t n, char* to) {
  const MapOperand& dst = plan_.operands[0];
  const void* sources[map_max_operands - 1] = {};
  for (int32_t i = 1; i < plan_.count; ++i) sources[i - 1] = source(i, offsets, n);
  if (plan_.function != nullptr) plan_.function(dst.direct ? to : converted_[0], sources, count(n), context_);
  if (plan_.function != nullptr && dst.direct) return;
  dst.convert(to, 1, plan_.function != nullptr ? converted_[0] : sources[0], 1, count(n));
}

// Returns the elements of source `i` of a box, contiguous and of the type of the kernel.
const void* Boxes::source(int32_t i, const int64_t* offsets, int64_t n) {
  if (ready_[i] != nullptr) return ready_[i];
  const MapOperand& operand = plan_.operands[i];
  if (constant_[i]) n = steps_;  // later boxes may be longer
  const char* elements = base_[i] + offsets[i] * operand.size;
  if (gap_ == 0 && !gathers_[i].dense()) {
    gathers_[i].run(blocks_[i], elements, one_step_ ? 1 : n);
    elements = blocks_[i];
  }
  if (!operand.direct) {
    operand.convert(converted_[i], 1, elements, 1, count(n));
    elements = converted_[i];
  }
  if (constant_[i]) ready_[i] = elements;
  return elements;
}

}  // namespace tenon::provider::cpu
