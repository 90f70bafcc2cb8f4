// convolution_weight over f64: products of GRADIENT and of the elements that taps read, summed over pixels. Both are
// packed, some pixels at a time: GRADIENT by channels, SRC in strips of columns, which are pairs of a channel and a
// tap.
#include <algorithm>
#include <vector>

#include "providers/cpu/convolution/f64_kernel.h"
#include "providers/cpu/threads/lease.h"
#include "providers/cpu/weight_gradient/sizes.h"
#include "providers/cpu/weight_gradient/weight_gradient.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kPixels = 256;    // packed at a time
constexpr int64_t kMostStrips = 8;  // that share packed channels of GRADIENT

class F64WeightGradient final : public ep_primitive {
 public:
  F64WeightGradient(const ep_device& on, const ep_primitive_desc& desc)
      : sizes_(desc, nullptr),
        kernel_(f64_strip_kernel(on.simd)),
        src_(find_operand(desc, EP_ROLE_SRC)),
        gradient_(find_operand(desc, EP_ROLE_GRADIENT)),
        in_(sizes_.in / sizes_.groups),
        out_(sizes_.out / sizes_.groups),
        strips_(divided(in_ * sizes_.taps(), kernel_.width)) {
    const int64_t blocks = on.threads == 1 ? 1 : divided(2 * on.threads, std::max<int64_t>(1, sizes_.groups));
    block_ = std::clamp<int64_t>(strips_ / blocks, 1, kMostStrips);
  }

  uint64_t workspace(const ep_shape*) const override {
    return static_cast<uint64_t>(device->threads * room()) * sizeof(double);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const int64_t blocks = divided(strips_, block_), units = sizes_.groups * blocks;
    const int64_t nanoseconds = sizes_.pixels() * sizes_.taps() * in_ * sizes_.out / 16;
    parallel(device->threads, nanoseconds, [&](int32_t part, int32_t parts) {
      double* const own = reinterpret_cast<double*>(address_of(launch.workspace)) + runner() * room();
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        const int64_t first = unit % blocks * block_;
        run_unit(launch, unit / blocks, first, std::min(block_, strips_ - first), own);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  // A part of a line of GRADIENT: results [x, x + length) of line (z, y) of an image.
  struct Line {
    int64_t image, z, y, x, length;
    int64_t at;  // the first one's place among the packed pixels
  };

  int64_t strip_size() const { return kPixels * kernel_.width; }
  int64_t tile_size() const { return f64_strip_rows * kernel_.width; }
  // Doubles per thread: packed channels, packed strips, sums.
  int64_t room() const {
    return kPixels * f64_strip_rows + block_ * (strip_size() + divided(out_, f64_strip_rows) * tile_size());
  }

  std::vector<Line> lines_of(int64_t first, int64_t count) const {
    std::vector<Line> lines;
    for (int64_t pixel = first; pixel < first + count; pixel += lines.back().length) {
      const int64_t line = pixel / sizes_.results[2], x = pixel % sizes_.results[2];
      lines.push_back({line / sizes_.results[1] / sizes_.results[0], line / sizes_.results[1] % sizes_.results[0],
                       line % sizes_.results[1], x, std::min(sizes_.results[2] - x, first + count - pixel),
                       pixel - first});
    }
    return lines;
  }

  // Packs one column: the elements that tap `tap` reads of a channel for the pixels of `lines`, and zeros beyond SRC.
  void pack_column(const std::vector<Line>& lines, const double* channel, int64_t tap, double* to) const {
    const int64_t width = kernel_.width;
    const int64_t taps[3] = {tap / sizes_.kernel[2] / sizes_.kernel[1], tap / sizes_.kernel[2] % sizes_.kernel[1],
                             tap % sizes_.kernel[2]};
    int64_t offset[3];
    for (int axis = 0; axis < 3; ++axis) offset[axis] = taps[axis] * sizes_.dilation[axis] - sizes_.pad[axis];
    const Span inside = steps_inside(sizes_.results[2], sizes_.stride[2], offset[2], sizes_.src[2]);
    const int64_t step = sizes_.stride[2] * sizes_.src_strides.axis[2];
    for (const Line& line : lines) {
      const int64_t z = line.z * sizes_.stride[0] + offset[0], y = line.y * sizes_.stride[1] + offset[1];
      const bool exists = z >= 0 && z < sizes_.src[0] && y >= 0 && y < sizes_.src[1];
      const int64_t end = line.x + line.length;
      const int64_t first = exists ? std::clamp(inside.first, line.x, end) : end;
      const int64_t last = exists ? std::clamp(inside.last, first, end) : end;
      double* at = to + line.at * width;
      for (int64_t x = line.x; x < first; ++x, at += width) *at = 0;
      const double* from = channel + line.image * sizes_.src_strides.outer + z * sizes_.src_strides.axis[0] +
                           y * sizes_.src_strides.axis[1] + offset[2] * sizes_.src_strides.axis[2];
      for (int64_t x = first; x < last; ++x, at += width) *at = from[x * step];
      for (int64_t x = last; x < end; ++x, at += width) *at = 0;
    }
  }

  void pack_gradient(const std::vector<Line>& lines, const double* channel, int32_t rows, double* to) const {
    const WeightStrides& strides = sizes_.gradient_strides;
    for (const Line& line : lines) {
      const double* const from = channel + line.image * strides.outer + line.z * strides.axis[0] +
                                 line.y * strides.axis[1] + line.x * strides.axis[2];
      for (int32_t i = 0; i < rows; ++i) {
        double* const at = to + line.at * f64_strip_rows + i;
        for (int64_t x = 0; x < line.length; ++x) {
          at[x * f64_strip_rows] = from[i * strides.channel + x * strides.axis[2]];
        }
      }
    }
  }

  // Computes the weights of a group in `count` strips from number `first` on.
  void run_unit(const ep_launch& launch, int64_t group, int64_t first, int64_t count, double* room) const {
    const auto doubles = [&](int32_t i) { return reinterpret_cast<double*>(address_of(launch.operands[i])); };
    const double* const src = doubles(src_) + group * in_ * sizes_.src_strides.channel;
    const double* const gradient = doubles(gradient_) + group * out_ * sizes_.gradient_strides.channel;
    const int64_t columns = in_ * sizes_.taps(), pixels = sizes_.pixels();
    double* const strips = room + kPixels * f64_strip_rows;
    double* const sums = strips + block_ * strip_size();
    const int64_t tiles = divided(out_, f64_strip_rows);
    if (pixels == 0) std::fill_n(sums, tiles * block_ * tile_size(), 0.0);
    for (int64_t pixel = 0; pixel < pixels; pixel += kPixels) {
      const int64_t depth = std::min(kPixels, pixels - pixel);
      const std::vector<Line> lines = lines_of(pixel, depth);
      for (int64_t i = 0; i < count * kernel_.width; ++i) {
        const int64_t column = first * kernel_.width + i;
        double* const to = strips + i / kernel_.width * strip_size() + i % kernel_.width;
        if (column < columns) {
          pack_column(lines, src + column / sizes_.taps() * sizes_.src_strides.channel, column % sizes_.taps(), to);
        } else {
          for (int64_t p = 0; p < depth; ++p) to[p * kernel_.width] = 0;
        }
      }
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t o = tile * f64_strip_rows;
        const auto rows = static_cast<int32_t>(std::min<int64_t>(f64_strip_rows, out_ - o));
        pack_gradient(lines, gradient + o * sizes_.gradient_strides.channel, rows, room);
        for (int64_t i = 0; i < count; ++i) {
          kernel_.run(
              {room, strips + i * strip_size(), sums + (tile * block_ + i) * tile_size(), depth, rows, pixel > 0});
        }
      }
    }
    for (int64_t o = 0; o < out_; ++o) {
      const double* const row = sums + o / f64_strip_rows * block_ * tile_size() + o % f64_strip_rows * kernel_.width;
      double* const to = doubles(0) + (group * out_ + o) * sizes_.dst_strides.outer;
      for (int64_t i = 0; i < count * kernel_.width && first * kernel_.width + i < columns; ++i) {
        to[place_of(first * kernel_.width + i)] = row[i / kernel_.width * tile_size() + i % kernel_.width];
      }
    }
  }

  // The offset of a column in DST.
  int64_t place_of(int64_t column) const {
    int64_t rest = column, place = 0;
    for (int axis = 3; axis-- > 0; rest /= sizes_.kernel[axis]) {
      place += rest % sizes_.kernel[axis] * sizes_.dst_strides.axis[axis];
    }
    return place + rest * sizes_.dst_strides.channel;
  }

  WeightSizes sizes_;
  F64StripKernel kernel_;
  int32_t src_, gradient_;
  int64_t in_, out_;  // channels per group
  int64_t strips_, block_;
};

}  // namespace

Refusal WeightGradient::f64_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = why_not(device, desc, info)) return refusal;
  info.flags = 0;
  if (desc.operands[0].dtype != EP_DTYPE_f64) {
    return Refusal::because("%s is not f64", dtype_name(desc.operands[0].dtype));
  }
  if (is_dynamic(desc)) return Refusal::because("products in strips need static dims");
  return why_few_channels(desc);
}

Refusal WeightGradient::f64_make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                 ep_primitive_info&) {
  *out = make_primitive<F64WeightGradient>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
