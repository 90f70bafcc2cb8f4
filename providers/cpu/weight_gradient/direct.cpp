#include "providers/cpu/weight_gradient/direct.h"

#include <algorithm>

#include "providers/cpu/convolution/cut.h"
#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kChunkBytes = 384 * 1024;  // bytes of SRC and GRADIENT per piece, so that they stay in the L2 cache

bool wants_frame(const WeightSizes& sizes) {
  return sizes.groups == 1 && sizes.in < kFewChannels && sizes.kernel[2] > 1 && sizes.dilation[2] == 1;
}

WeightSizes framed_sizes(WeightSizes sizes) {
  if (!wants_frame(sizes)) return sizes;
  sizes.in *= sizes.kernel[2];
  sizes.src[2] = (sizes.results[2] - 1) * sizes.stride[2] + 1;
  sizes.kernel[2] = 1;
  sizes.pad[2] = 0;
  return sizes;
}

}  // namespace

DirectWeightGradient::DirectWeightGradient(const WeightSizes& sizes, SimdLevel level, int32_t threads)
    : sizes_(framed_sizes(sizes)),
      level_(level),
      threads_(threads),
      framed_(wants_frame(sizes)),
      channels_(sizes.in),
      src_columns_(sizes.src[2]),
      frame_first_(sizes.pad[2]),
      units_(sizes_, sizes_.in / sizes.groups, outer_kernels(level), threads) {
  if (framed_) frame_columns_ = (sizes.results[2] - 1) * sizes.stride[2] + sizes.kernel[2];
  const WeightStrides& to = sizes.dst_strides;
  for (int64_t z = 0; z < sizes_.kernel[0]; ++z) {
    for (int64_t y = 0; y < sizes_.kernel[1]; ++y) {
      for (int64_t x = 0; x < sizes_.kernel[2]; ++x) {
        places_.taps.push_back(z * to.axis[0] + y * to.axis[1] + x * to.axis[2]);
      }
    }
  }
  for (int64_t c = 0; c < sizes_.in / sizes.groups; ++c) {
    places_.columns.push_back(framed_ ? c % channels_ * to.channel + c / channels_ * to.axis[2] : c * to.channel);
  }
  places_.row = to.outer;
  const int64_t line_floats = sizes_.results[2] * (sizes_.out + sizes_.stride[1] * sizes_.stride[2] * channels_);
  chunks_ =
      std::clamp<int64_t>(sizes_.lines() * line_floats * 4 / kChunkBytes, 1, std::max<int64_t>(sizes_.lines(), 1));
  chunk_ = divided(sizes_.lines(), chunks_);
}

int64_t DirectWeightGradient::frame_floats() const {
  return framed_ ? sizes_.images * sizes_.src[0] * sizes_.src[1] * frame_columns_ * channels_ : 0;
}

int64_t DirectWeightGradient::floats() const {
  return frame_floats() + (chunks_ > 1 ? units_.count() : threads_) * units_.floats(sizes_.taps());
}

WeightOperands DirectWeightGradient::fill_frame(const WeightOperands& operands, float* frame) const {
  const int64_t row = frame_columns_ * channels_, rows = sizes_.images * sizes_.src[0] * sizes_.src[1];
  const int64_t first = std::max<int64_t>(0, -frame_first_);
  const int64_t last = std::max(first, std::min(src_columns_, frame_columns_ - frame_first_));
  const int64_t zeros = (first + frame_first_) * channels_, end = (last + frame_first_) * channels_;
  for (int64_t i = 0; i < rows; ++i) {
    std::fill_n(frame + i * row, zeros, 0.0F);
    std::fill(frame + i * row + end, frame + (i + 1) * row, 0.0F);
  }
  StridedCopy copy;
  copy.rank = 5;
  copy.size = sizeof(float);
  const int64_t dims[5] = {sizes_.images, sizes_.src[0], sizes_.src[1], last - first, channels_};
  const WeightStrides& from = operands.src_strides;
  const int64_t src_strides[5] = {from.outer, from.axis[0], from.axis[1], from.axis[2], from.channel};
  const int64_t dst_strides[5] = {sizes_.src[0] * sizes_.src[1] * row, sizes_.src[1] * row, row, channels_, 1};
  std::copy_n(dims, 5, copy.dims);
  std::copy_n(src_strides, 5, copy.src_strides);
  std::copy_n(dst_strides, 5, copy.dst_strides);
  if (last > first && rows > 0) {
    strided_copy(copy, reinterpret_cast<char*>(frame + zeros),
                 reinterpret_cast<const char*>(operands.src + first * from.axis[2]), level_, threads_);
  }
  WeightOperands framed = operands;
  framed.src = frame;
  framed.src_strides.outer = dst_strides[0];
  std::copy_n(dst_strides + 1, 3, framed.src_strides.axis);
  return framed;
}

void DirectWeightGradient::add_lines(const WeightOperands& operands, int64_t tap, int64_t first, int64_t last,
                                     std::vector<OuterLine>* lines) const {
  const int64_t taps[3] = {tap / sizes_.kernel[2] / sizes_.kernel[1], tap / sizes_.kernel[2] % sizes_.kernel[1],
                           tap % sizes_.kernel[2]};
  const size_t start = lines->size();
  int64_t offset[3];
  for (int i = 0; i < 3; ++i) offset[i] = taps[i] * sizes_.dilation[i] - sizes_.pad[i];
  const Span span = steps_inside(sizes_.results[2], sizes_.stride[2], offset[2], sizes_.src[2]);
  const int64_t count = span.last - span.first;
  const WeightStrides &left = operands.gradient_strides, &right = operands.src_strides;
  for (int64_t line = first; line < last && count > 0; ++line) {
    const int64_t result[3] = {line / sizes_.results[1] % sizes_.results[0], line % sizes_.results[1], span.first};
    OuterLine made{0, 0, count};
    const int64_t image = line / sizes_.results[1] / sizes_.results[0];
    made.left = image * left.outer;
    made.right = image * right.outer;
    bool meets = true;
    for (int i = 0; i < 3; ++i) {
      const int64_t place = result[i] * sizes_.stride[i] + offset[i];
      meets = meets && place >= 0 && place < sizes_.src[i];
      made.left += result[i] * left.axis[i];
      made.right += place * right.axis[i];
    }
    if (!meets) continue;
    OuterLine* before = lines->size() == start ? nullptr : &lines->back();
    const bool follows = before != nullptr && before->left + before->count * left.axis[2] == made.left &&
                         before->right + before->count * sizes_.stride[2] * right.axis[2] == made.right;
    if (follows) {
      before->count += count;
    } else {
      lines->push_back(made);
    }
  }
}

void DirectWeightGradient::run(const WeightOperands& given, float* room) const {
  const WeightOperands operands = framed_ ? fill_frame(given, room) : given;
  float* const sums = room + frame_floats();
  const int64_t taps = sizes_.taps(), unit_floats = units_.floats(taps);
  parallel(threads_, sizes_.nanoseconds(), [&](int32_t part, int32_t parts) {
    const int64_t begin = units_.count() * part / parts, end = units_.count() * (part + 1) / parts;
    std::vector<OuterLine> lines;
    std::vector<size_t> ends(static_cast<size_t>(taps));
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
      lines.clear();
      for (int64_t tap = 0; tap < taps; ++tap) {
        add_lines(operands, tap, chunk * chunk_, std::min(sizes_.lines(), (chunk + 1) * chunk_), &lines);
        ends[static_cast<size_t>(tap)] = lines.size();
      }
      for (int64_t i = begin; i < end; ++i) {
        const WeightUnits::Unit unit = units_.at(i);
        float* const dst = sums + (chunks_ > 1 ? i : runner()) * unit_floats;
        OuterTile tile;
        tile.left = operands.gradient + unit.row;
        tile.right = operands.src + unit.column;
        tile.left_step = operands.gradient_strides.axis[2];
        tile.right_step = sizes_.stride[2] * operands.src_strides.axis[2];
        tile.rows = unit.rows;
        tile.columns = unit.columns;
        tile.adds = chunk > 0;
        for (int64_t tap = 0; tap < taps; ++tap) {
          const size_t first = tap == 0 ? 0 : ends[static_cast<size_t>(tap) - 1];
          tile.lines = lines.data() + first;
          tile.line_count = static_cast<int64_t>(ends[static_cast<size_t>(tap)] - first);
          tile.dst = dst + tap * units_.tile_floats();
          units_.kernels().run(tile);
        }
        if (chunk + 1 == chunks_) places_.write(units_, unit, dst, operands.dst);
      }
    }
  });
}

}  // namespace tenon::provider::cpu
