#include "providers/cpu/weight_gradient/winograd.h"

#include <algorithm>
#include <atomic>

#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kPositions = 16;
constexpr int64_t kTaps = 9;
constexpr int64_t kGap = 16;  // floats between arrays, so that arrays of power-of-two length do not share cache sets
constexpr int64_t kLeastChannels = 32, kLeastSquares = 32;  // with fewer, the direct method is faster
constexpr int64_t kChunkBytes = 8 << 20;  // most transformed squares, so that they stay in the L3 cache
constexpr int64_t kUnitsAtOnce = 16;      // units whose sums stay in the L2 cache

int64_t row_of(int64_t channels) { return divided(channels, 16) * 16 + kGap; }
int64_t squares_of(const WeightSizes& sizes) {
  return sizes.images * divided(sizes.results[1], 2) * divided(sizes.results[2], 2);
}

}  // namespace

WinogradWeightGradient::WinogradWeightGradient(const WeightSizes& sizes, SimdLevel level, int32_t threads)
    : sizes_(sizes),
      kernels_(winograd_kernels(level)),
      threads_(threads),
      zeros_(static_cast<size_t>(std::max(sizes.in, sizes.out)), 0.0F),
      units_(sizes, sizes.in / sizes.groups, outer_kernels(level), threads),
      down_(divided(sizes.results[1], 2)),
      across_(divided(sizes.results[2], 2)),
      squares_(squares_of(sizes)),
      left_row_(row_of(sizes.out)),
      right_row_(row_of(sizes.in)) {
  const WeightStrides& to = sizes.dst_strides;
  for (int64_t tap = 0; tap < kTaps; ++tap) places_.taps.push_back(tap / 3 * to.axis[1] + tap % 3 * to.axis[2]);
  for (int64_t c = 0; c < sizes.in / sizes.groups; ++c) places_.columns.push_back(c * to.channel);
  places_.row = to.outer;
  chunks_ = divided(squares_ * kPositions * (left_row_ + right_row_) * 4, kChunkBytes);
  chunk_ = divided(squares_, chunks_);
}

bool WinogradWeightGradient::pays(const WeightSizes& sizes) {
  for (int axis = 1; axis < 3; ++axis) {
    if (sizes.kernel[axis] != 3 || sizes.stride[axis] != 1 || sizes.dilation[axis] != 1) return false;
  }
  if (sizes.kernel[0] != 1 || sizes.src[0] != 1 || sizes.results[0] != 1 || sizes.pad[0] != 0) return false;
  return std::min(sizes.in, sizes.out) / sizes.groups >= kLeastChannels && squares_of(sizes) >= kLeastSquares;
}

int64_t WinogradWeightGradient::left_position() const { return chunk_ * left_row_ + kGap; }
int64_t WinogradWeightGradient::right_position() const { return chunk_ * right_row_ + kGap; }
int64_t WinogradWeightGradient::unit_floats() const { return units_.floats(kPositions) + kGap; }

// The memory for transformed squares, sums of units, and the taps of one unit per thread.
int64_t WinogradWeightGradient::floats() const {
  const int64_t units = chunks_ > 1 ? units_.count() : threads_ * kUnitsAtOnce;
  return kPositions * (left_position() + right_position()) + units * unit_floats() + threads_ * units_.floats(kTaps);
}

void WinogradWeightGradient::transform(const WeightOperands& operands, int64_t square, int64_t number, float* left,
                                       float* right) const {
  const int64_t y = square / across_ % down_ * 2, x = square % across_ * 2, image = square / across_ / down_;
  const WeightStrides &of_src = operands.src_strides, &of_gradient = operands.gradient_strides;
  WinogradSquare source;
  for (int64_t p = 0; p < kPositions; ++p) {
    const int64_t v = y + p / 4 - sizes_.pad[1], u = x + p % 4 - sizes_.pad[2];
    const bool inside = v >= 0 && v < sizes_.src[1] && u >= 0 && u < sizes_.src[2];
    source.pixels[p] =
        inside ? operands.src + image * of_src.outer + v * of_src.axis[1] + u * of_src.axis[2] : zeros_.data();
  }
  source.dst = right + number * right_row_;
  source.position = right_position();
  source.channels = sizes_.in;
  kernels_.square(source);
  WinogradGradient gradient;
  for (int64_t p = 0; p < 4; ++p) {
    const int64_t v = y + p / 2, u = x + p % 2;
    const int64_t at = image * of_gradient.outer + v * of_gradient.axis[1] + u * of_gradient.axis[2];
    gradient.pixels[p] = v < sizes_.results[1] && u < sizes_.results[2] ? operands.gradient + at : zeros_.data();
  }
  gradient.dst = left + number * left_row_;
  gradient.position = left_position();
  gradient.channels = sizes_.out;
  kernels_.gradient(gradient);
}

// Computes the sums of units [begin, end) position by position, so that the operands of one position stay in the L2
// cache.
void WinogradWeightGradient::multiply(int64_t count, int64_t begin, int64_t end, const float* left, const float* right,
                                      bool adds, float* sums) const {
  const OuterLine all{0, 0, count};
  OuterTile tile;
  tile.lines = &all;
  tile.line_count = 1;
  tile.left_step = left_row_;
  tile.right_step = right_row_;
  tile.adds = adds;
  for (int64_t position = 0; position < kPositions; ++position) {
    for (int64_t i = begin; i < end; ++i) {
      const WeightUnits::Unit unit = units_.at(i);
      tile.left = left + position * left_position() + unit.row;
      tile.right = right + position * right_position() + unit.column;
      tile.dst = sums + (i - begin) * unit_floats() + position * units_.tile_floats();
      tile.rows = unit.rows;
      tile.columns = unit.columns;
      units_.kernels().run(tile);
    }
  }
}

bool WinogradWeightGradient::run(const WeightOperands& operands, float* room) const {
  float* const left = room;
  float* const right = left + kPositions * left_position();
  float* const taps = right + kPositions * right_position();
  float* const sums = taps + threads_ * units_.floats(kTaps);
  std::atomic<bool> finite = true;
  for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
    const int64_t first = chunk * chunk_, count = std::min(chunk_, squares_ - first);
    parallel(threads_, count * (sizes_.in + sizes_.out), [&](int32_t part, int32_t parts) {
      for (int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
        transform(operands, first + i, i, left, right);
      }
    });
    parallel(threads_, sizes_.nanoseconds() / 2 / chunks_, [&](int32_t part, int32_t parts) {
      const int64_t last = units_.count() * (part + 1) / parts;
      for (int64_t begin = units_.count() * part / parts; begin < last; begin += kUnitsAtOnce) {
        const int64_t end = std::min(begin + kUnitsAtOnce, last);
        float* const own = sums + (chunks_ > 1 ? begin : runner() * kUnitsAtOnce) * unit_floats();
        multiply(count, begin, end, left, right, chunk > 0, own);
        for (int64_t i = begin; i < end && chunk + 1 == chunks_; ++i) {
          float* const values = taps + runner() * units_.floats(kTaps);
          const int64_t tile = units_.tile_floats();
          const WeightUnits::Unit unit = units_.at(i);
          if (!kernels_.weight_sums({own + (i - begin) * unit_floats(), tile, values, tile,
                                     unit.rows * static_cast<int64_t>(units_.kernels().columns)})) {
            finite = false;
          }
          places_.write(units_, unit, values, operands.dst);
        }
      }
    });
  }
  return finite;
}

}  // namespace tenon::provider::cpu
