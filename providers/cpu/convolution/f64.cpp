// convolution and transposed convolution over f64: all ranks, groups and strides. Results are computed in strips of
// adjacent pixels. A strip is a product of weights and of the pixels of SRC that its taps read, which are packed first.
//
// The results of a transposed convolution are divided by their remainder modulo the stride. The results of one
// remainder read the same taps, and adjacent pixels of SRC.
#include <algorithm>
#include <vector>

#include "providers/cpu/convolution/convolution.h"
#include "providers/cpu/convolution/f64_kernel.h"
#include "providers/cpu/plain/epilogue.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int32_t kAxes = 3;                 // absent spatial axes come first and have length 1
constexpr int64_t kBlockBytes = 384 * 1024;  // packed pixels that stay in the L2 cache

// A tap of the kernel: its offset in WEIGHT, and the place of SRC that the first result reads.
struct F64Tap {
  int64_t weight;
  int64_t from[kAxes];
};

// Results that read the same taps: first + i * step along each axis; their places in SRC are src_step apart.
struct F64Class {
  int64_t first[kAxes], step[kAxes], count[kAxes], src_step[kAxes];
  std::vector<F64Tap> taps;
  int64_t pixels = 1;  // pixels of one image
};

// The results of one axis that read the same taps.
struct F64AxisClass {
  int64_t first, step, count, src_step;
  std::vector<std::pair<int64_t, int64_t>> taps;  // number of the tap, and place of SRC that the first result reads
};

int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

class F64ConvolutionPrimitive final : public ep_primitive {
 public:
  F64ConvolutionPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        kernel_(f64_strip_kernel(on.simd)),
        src_(find_operand(desc, EP_ROLE_SRC)),
        weight_(find_operand(desc, EP_ROLE_WEIGHT)),
        bias_(find_operand(desc, EP_ROLE_BIAS)) {
    const ep_convolution_attributes& attributes = desc.attributes.convolution;
    const ep_operand_desc &dst = desc.operands[0], &src = desc.operands[src_], &weight = desc.operands[weight_];
    const bool transposed = attributes.transposed != 0;
    groups_ = attributes.groups;
    images_ = dst.dims[0];
    out_ = dst.dims[1] / groups_;
    in_ = src.dims[1] / groups_;
    row_ = transposed ? weight.strides[1] : weight.strides[0];
    column_ = transposed ? weight.strides[0] : weight.strides[1];
    group_ = transposed ? in_ * weight.strides[0] : out_ * weight.strides[0];
    std::vector<F64AxisClass> axes[kAxes];
    for (int32_t at = 0; at < kAxes; ++at) {
      const int32_t i = at - (kAxes - attributes.spatial_rank);
      if (i < 0) {
        axes[at].push_back({0, 1, 1, 1, {{0, 0}}});
        continue;
      }
      src_size_[at] = src.dims[2 + i];
      src_strides_[at] = src.strides[2 + i];
      dst_strides_[at] = dst.strides[2 + i];
      weight_strides_[at] = weight.strides[2 + i];
      axes[at] = classes_of(transposed, dst.dims[2 + i], weight.dims[2 + i], attributes.stride[i],
                            attributes.dilation[i], attributes.pad_low[i]);
    }
    for (const F64AxisClass& z : axes[0]) {
      for (const F64AxisClass& y : axes[1]) {
        for (const F64AxisClass& x : axes[2]) add_class({&z, &y, &x});
      }
    }
    divide(on.threads);
  }

  uint64_t workspace(const ep_shape*) const override {
    return static_cast<uint64_t>(device->threads * room_) * sizeof(double);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const int64_t units = first_units_.back();
    parallel(device->threads, nanoseconds_, [&](int32_t part, int32_t parts) {
      double* const room = reinterpret_cast<double*>(address_of(launch.workspace)) + runner() * room_;
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) run_unit(launch, unit, room);
    });
    if (desc_.epilogue_count != 0) run_epilogues(launch);
    return EP_STATUS_OK;
  }

 private:
  static std::vector<F64AxisClass> classes_of(bool transposed, int64_t results, int64_t kernel, int64_t stride,
                                              int64_t dilation, int64_t pad) {
    std::vector<F64AxisClass> classes;
    const int64_t step = transposed ? stride : 1;
    for (int64_t first = 0; first < std::min(step, results); ++first) {
      F64AxisClass one{first, step, ceiling(results - first, step), transposed ? 1 : stride, {}};
      for (int64_t k = 0; k < kernel; ++k) {
        const int64_t place = transposed ? first + pad - k * dilation : k * dilation - pad;
        if (!transposed) one.taps.emplace_back(k, place);
        if (transposed && place % stride == 0) one.taps.emplace_back(k, place / stride);
      }
      classes.push_back(std::move(one));
    }
    return classes;
  }

  void add_class(const F64AxisClass* const (&axes)[kAxes]) {
    F64Class one;
    for (int32_t at = 0; at < kAxes; ++at) {
      one.first[at] = axes[at]->first;
      one.step[at] = axes[at]->step;
      one.count[at] = axes[at]->count;
      one.src_step[at] = axes[at]->src_step;
      one.pixels *= axes[at]->count;
    }
    for (const auto& [z, from_z] : axes[0]->taps) {
      for (const auto& [y, from_y] : axes[1]->taps) {
        for (const auto& [x, from_x] : axes[2]->taps) {
          one.taps.push_back(
              {z * weight_strides_[0] + y * weight_strides_[1] + x * weight_strides_[2], {from_z, from_y, from_x}});
        }
      }
    }
    classes_.push_back(std::move(one));
  }

  int64_t depth(const F64Class& of) const { return in_ * static_cast<int64_t>(of.taps.size()); }
  int64_t strips(const F64Class& of) const { return ceiling(images_ * of.pixels, kernel_.width); }
  int64_t strips_of_block(const F64Class& of) const {
    const int64_t bytes = std::max<int64_t>(1, depth(of) * kernel_.width * static_cast<int64_t>(sizeof(double)));
    return std::clamp<int64_t>(kBlockBytes / bytes, 8, 32);
  }

  int64_t blocks(const F64Class& of) const { return ceiling(strips(of), strips_of_block(of)); }

  // Divides the results into units: a class, some groups, some channels, a block of strips. Groups and channels are
  // divided only if there are few other units, because each unit finds its pixels, and packs them for each group.
  void divide(int32_t threads) {
    int64_t all_blocks = 0, deepest = 0;
    for (const F64Class& each : classes_) {
      all_blocks += blocks(each);
      deepest = std::max(deepest, depth(each) * (strips_of_block(each) * kernel_.width + f64_strip_rows));
      nanoseconds_ += images_ * each.pixels * groups_ * out_ * depth(each) / 16;
    }
    int64_t wanted = threads == 1 ? 1 : ceiling(4 * threads, std::max<int64_t>(1, all_blocks));
    groups_of_unit_ = std::max<int64_t>(1, ceiling(groups_, wanted));
    wanted = ceiling(wanted, ceiling(groups_, groups_of_unit_));
    const int64_t each = ceiling(out_, std::clamp<int64_t>(out_ / (4 * f64_strip_rows), 1, wanted));
    channels_ = std::max<int64_t>(1, ceiling(each, f64_strip_rows)) * f64_strip_rows;
    first_units_.push_back(0);
    for (const F64Class& of : classes_) first_units_.push_back(first_units_.back() + pieces() * blocks(of));
    room_ = (deepest + 7) / 8 * 8;
  }
  int64_t pieces() const { return ceiling(groups_, groups_of_unit_) * ceiling(out_, channels_); }

  // Pixels of a strip that follow each other along the last axis: pixels [begin, end) of the strip.
  struct Run {
    int32_t begin, end;
    int64_t image, dst;    // offset of the image in SRC; offset of the first result in DST
    int64_t place[kAxes];  // the place of the first pixel in SRC, without a tap's own place
  };

  void find_runs(const F64Class& of, int64_t strip, std::vector<Run>* runs) const {
    const ep_operand_desc &dst = desc_.operands[0], &src = desc_.operands[src_];
    constexpr int32_t last = kAxes - 1;
    const int64_t first = strip * kernel_.width;
    const auto count = static_cast<int32_t>(std::min<int64_t>(kernel_.width, images_ * of.pixels - first));
    for (int32_t j = 0; j < count; j = runs->back().end) {
      int64_t at[kAxes], rest = first + j;
      for (int32_t axis = kAxes; axis-- > 0; rest /= of.count[axis]) at[axis] = rest % of.count[axis];
      const auto length = static_cast<int32_t>(std::min<int64_t>(count - j, of.count[last] - at[last]));
      Run run{j, j + length, rest * src.strides[0], rest * dst.strides[0], {}};
      for (int32_t axis = 0; axis < kAxes; ++axis) {
        run.place[axis] = at[axis] * of.src_step[axis];
        run.dst += (of.first[axis] + at[axis] * of.step[axis]) * dst_strides_[axis];
      }
      runs->push_back(run);
    }
  }

  // The elements of SRC that one tap reads for one run: those of pixels [first, last) of the strip.
  struct Reads {
    int32_t first, last;
    int64_t offset;  // the element of pixel `first` in SRC, in group 0
  };

  Reads reads_of(const F64Class& of, const F64Tap& tap, const Run& run) const {
    constexpr int32_t inner = kAxes - 1;
    Reads reads{0, 0, 0};
    int64_t offset = run.image;
    for (int32_t axis = 0; axis < inner; ++axis) {
      const int64_t place = run.place[axis] + tap.from[axis];
      if (place < 0 || place >= src_size_[axis]) return reads;
      offset += place * src_strides_[axis];
    }
    const int64_t place = run.place[inner] + tap.from[inner], step = of.src_step[inner], length = run.end - run.begin;
    const int64_t before = place >= 0 ? 0 : std::min(length, ceiling(-place, step));
    const int64_t room = src_size_[inner] - place;
    const int64_t inside = (length - 1) * step < room ? length : room <= 0 ? 0 : ceiling(room, step);
    if (before >= inside) return reads;
    reads.first = run.begin + static_cast<int32_t>(before);
    reads.last = run.begin + static_cast<int32_t>(inside);
    reads.offset = offset + (place + before * step) * src_strides_[inner];
    return reads;
  }

  // The runs of some strips, and what each tap reads for them.
  struct Strips {
    std::vector<Run> runs;
    std::vector<size_t> firsts;  // the first run of each strip, and the number of runs
    std::vector<Reads> reads;    // by run and tap
  };

  // Writes [strip, channel, tap, pixel]: the elements that each tap reads for each pixel, and zeros beyond SRC. Reads
  // each channel in order, because the channels of SRC may be far apart.
  void pack_pixels(const Strips& block, int64_t taps, int64_t step, const double* src, double* to) const {
    const int64_t width = kernel_.width, in = in_, channel = desc_.operands[src_].strides[1];
    const size_t count = block.firsts.size() - 1;
    for (int64_t c = 0; c < in; ++c, src += channel) {
      for (size_t strip = 0; strip < count; ++strip) {
        const size_t first = block.firsts[strip], end = block.firsts[strip + 1];
        const Reads* reads = block.reads.data() + static_cast<int64_t>(first) * taps;
        double* row = to + (static_cast<int64_t>(strip) * in + c) * taps * width;
        for (int64_t tap = 0; tap < taps; ++tap, ++reads, row += width) {
          if (reads->first == 0 && reads->last == width) {
            move(row, 1, src + reads->offset, step, width, 0);
            continue;
          }
          std::fill_n(row, width, 0.0);
          const Reads* run = reads;
          for (size_t i = first; i < end; ++i, run += taps) {
            move(row + run->first, 1, src + run->offset, step, run->last - run->first, 0);
          }
        }
      }
    }
  }

  // to[i * to_step] = from[i * from_step] + bias.
  static void move(double* to, int64_t to_step, const double* from, int64_t from_step, int64_t n, double bias) {
    int64_t i = 0;
    if (to_step == 1 && from_step == 1) {
      for (; i + 2 <= n; i += 2) {
        const double a = from[i] + bias, b = from[i + 1] + bias;
        to[i] = a;
        to[i + 1] = b;
      }
    }
    for (; i < n; ++i) to[i * to_step] = from[i * from_step] + bias;
  }

  // Writes [channel, tap, row] of `rows` channels of DST.
  void pack_weights(const F64Class& of, const double* weight, int32_t rows, double* to) const {
    for (int64_t c = 0; c < in_; ++c) {
      for (const F64Tap& tap : of.taps) {
        const double* from = weight + c * column_ + tap.weight;
        for (int32_t i = 0; i < rows; ++i) to[i] = from[i * row_];
        to += f64_strip_rows;
      }
    }
  }

  void run_unit(const ep_launch& launch, int64_t unit, double* room) const {
    const auto after = std::upper_bound(first_units_.begin(), first_units_.end(), unit);
    const auto number = static_cast<size_t>(after - first_units_.begin()) - 1;
    const F64Class& of = classes_[number];
    unit -= first_units_[number];
    const int64_t first = unit % blocks(of) * strips_of_block(of);
    const int64_t count = std::min(strips_of_block(of), strips(of) - first);
    Strips block;
    for (int64_t i = 0; i < count; ++i) {
      block.firsts.push_back(block.runs.size());
      find_runs(of, first + i, &block.runs);
    }
    block.firsts.push_back(block.runs.size());
    block.reads.reserve(block.runs.size() * of.taps.size());
    for (const Run& run : block.runs) {
      for (const F64Tap& tap : of.taps) block.reads.push_back(reads_of(of, tap, run));
    }
    const int64_t parts = ceiling(out_, channels_), piece = unit / blocks(of);
    const int64_t group = piece / parts * groups_of_unit_;
    for (int64_t g = group; g < std::min(group + groups_of_unit_, groups_); ++g) {
      run_group(launch, of, g, piece % parts * channels_, block, room);
    }
  }

  // Computes channels of one group, from number `channel` on, for some strips.
  void run_group(const ep_launch& launch, const F64Class& of, int64_t group, int64_t channel, const Strips& block,
                 double* room) const {
    const auto doubles = [&](int32_t i) { return reinterpret_cast<double*>(address_of(launch.operands[i])); };
    const double* const src = doubles(src_) + group * in_ * desc_.operands[src_].strides[1];
    const double* const weight = doubles(weight_) + group * group_;
    double* const strips = room + depth(of) * f64_strip_rows;
    const int64_t strip_size = depth(of) * kernel_.width, taps = static_cast<int64_t>(of.taps.size());
    const size_t count = block.firsts.size() - 1;
    pack_pixels(block, taps, of.src_step[kAxes - 1] * src_strides_[kAxes - 1], src, strips);
    for (int64_t o = channel; o < std::min(channel + channels_, out_); o += f64_strip_rows) {
      const auto rows = static_cast<int32_t>(std::min<int64_t>(f64_strip_rows, out_ - o));
      pack_weights(of, weight + o * row_, rows, room);
      for (size_t i = 0; i < count; ++i) {
        alignas(64) double tile[f64_strip_rows * f64_widest_strip];
        kernel_.run({room, strips + static_cast<int64_t>(i) * strip_size, tile, depth(of), rows, false});
        store(launch, of, block, i, group * out_ + o, rows, tile);
      }
    }
  }

  void store(const ep_launch& launch, const F64Class& of, const Strips& block, size_t strip, int64_t channel,
             int32_t rows, const double* tile) const {
    auto* const dst = reinterpret_cast<double*>(address_of(launch.operands[0]));
    const int64_t step = of.step[kAxes - 1] * dst_strides_[kAxes - 1];
    for (int32_t i = 0; i < rows; ++i, ++channel) {
      double bias = 0;
      if (bias_ >= 0) {
        bias = reinterpret_cast<const double*>(
            address_of(launch.operands[bias_]))[channel * desc_.operands[bias_].strides[0]];
      }
      double* const plane = dst + channel * desc_.operands[0].strides[1];
      const double* const from = tile + i * kernel_.width;
      for (size_t run = block.firsts[strip]; run < block.firsts[strip + 1]; ++run) {
        const Run& to = block.runs[run];
        move(plane + to.dst, step, from + to.begin, 1, to.end - to.begin, bias);
      }
    }
  }

  // Applies the epilogues to rows of the finished result.
  void run_epilogues(const ep_launch& launch) const {
    const ep_operand_desc& dst = desc_.operands[0];
    const int32_t last = dst.rank - 1;
    const int64_t length = dst.dims[last];
    Axes outer;
    for (int32_t axis = 0; axis < last; ++axis) outer.add(dst.dims[axis], dst.strides[axis]);
    const int64_t rows = outer.count();
    parallel(device->threads, rows * length * desc_.epilogue_count, [&](int32_t part, int32_t parts) {
      std::vector<double> row(static_cast<size_t>(length));
      std::vector<char> buffer;
      for (int64_t i = rows * part / parts; i < rows * (part + 1) / parts; ++i) {
        int64_t index[EP_MAX_RANK] = {}, rest = i;
        for (int32_t axis = last; axis-- > 0; rest /= dst.dims[axis]) index[axis] = rest % dst.dims[axis];
        double* const at = reinterpret_cast<double*>(address_of(launch.operands[0])) + outer.offset(i);
        for (int64_t x = 0; x < length; ++x) row[static_cast<size_t>(x)] = at[x * dst.strides[last]];
        apply_epilogues(desc_, device->simd, EP_DTYPE_f64, launch, index, length, row.data(), &buffer);
        for (int64_t x = 0; x < length; ++x) at[x * dst.strides[last]] = row[static_cast<size_t>(x)];
      }
    });
  }

  ep_primitive_desc desc_;
  F64StripKernel kernel_;
  int32_t src_, weight_, bias_;
  int64_t groups_ = 1, images_ = 1, out_ = 1, in_ = 1;  // channels per group
  int64_t row_ = 0, column_ = 0, group_ = 0;            // strides of WEIGHT: channel of DST, channel of SRC, group
  int64_t src_size_[kAxes] = {1, 1, 1};
  int64_t src_strides_[kAxes] = {0, 0, 0}, dst_strides_[kAxes] = {0, 0, 0}, weight_strides_[kAxes] = {0, 0, 0};
  std::vector<F64Class> classes_;
  std::vector<int64_t> first_units_;           // first unit of each class, and the number of units
  int64_t groups_of_unit_ = 1, channels_ = 1;  // channels of DST
  int64_t room_ = 0;                           // doubles per thread
  int64_t nanoseconds_ = 0;
};

}  // namespace

Refusal F64Convolution::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (is_dynamic(desc)) return Refusal::because("products in strips need static dims");
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const int32_t spatial = desc.attributes.convolution.spatial_rank;
  if (src == nullptr || operand(desc, EP_ROLE_WEIGHT) == nullptr || desc.operands[0].role != EP_ROLE_DST) {
    return Refusal::because("an operand is missing");
  }
  if (spatial < 1 || spatial > kAxes || src->rank != spatial + 2) {
    return Refusal::because("%d spatial dims of rank %d", spatial, src->rank);
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (desc.operands[i].dtype != EP_DTYPE_f64 || is_scalar(desc.operands[i])) {
      return Refusal::because("operand %u is not a tensor of f64", i);
    }
  }
  return why_no_plain_epilogues(desc, device.simd, EP_DTYPE_f64);
}

Refusal F64Convolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<F64ConvolutionPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
