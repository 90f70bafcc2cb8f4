// Convolution with one spatial dim, channels first and stride 1: processes a piece of all channels' lines at a time.
#include <algorithm>

#include "providers/cpu/convolution/convolution.h"
#include "providers/cpu/convolution/images.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kFrameBytes = 24 * 1024;    // so that a frame stays in the L1 cache
constexpr int64_t kWeightBytes = 128 * 1024;  // so that weights stay in the L2 cache; each piece reads all
constexpr int64_t kFewestResults = 32;        // per line

// Copies pieces of the lines into a frame with zeros around them, so that every tap lies within the frame.
class LinesPrimitive final : public ep_primitive {
 public:
  LinesPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : images_(desc), kernel_(line_kernel(on.simd)), finisher_(on, desc), threads_(on.threads) {
    const int64_t floats = kFrameBytes / static_cast<int64_t>(sizeof(float)) / std::max<int64_t>(images_.in, 1);
    piece_ = std::max((floats - reach()) / kernel_.columns, int64_t{1}) * kernel_.columns;
    row_ = piece_ + kernel_.columns + reach();  // whole vectors at the end
    groups_ = (images_.out + kernel_.results - 1) / kernel_.results;
    pieces_ = (images_.dst_size[1] + piece_ - 1) / piece_;
  }

  uint64_t workspace(const ep_shape*) const override {
    return static_cast<uint64_t>(packed_floats() + threads_ * images_.in * row_) * sizeof(float);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    float* const packed = floats(launch.workspace);
    lay_out_weights(launch, packed);
    const int64_t nanoseconds = images_.pixels() * images_.out * images_.in * images_.taps() / 50;
    const WideLease lease(threads_, nanoseconds);
    const auto body = [&](int32_t part, int32_t parts) {
      float* const frame = packed + packed_floats() + runner() * images_.in * row_;
      const int64_t units = images_.count * pieces_;
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        run_piece(launch, packed, frame, unit / pieces_, unit % pieces_ * piece_);
      }
    };
    run_parts(lease.width(), nanoseconds, body);
    finisher_.end(launch, lease.width());
    return EP_STATUS_OK;
  }

 private:
  static float* floats(ep_buffer buffer) { return reinterpret_cast<float*>(address_of(buffer)); }

  // The distance between the first and the last tap.
  int64_t reach() const { return (images_.kernel[1] - 1) * images_.dilation[1]; }
  int64_t group_floats() const { return images_.in * images_.kernel[1] * kernel_.results; }
  // The weights of all groups, then their biases.
  int64_t packed_floats() const { return groups_ * (group_floats() + kernel_.results); }

  void lay_out_weights(const ep_launch& launch, float* packed) const {
    const float* const weights = floats(launch.operands[images_.weight]);
    const float* const bias = images_.bias < 0 ? nullptr : floats(launch.operands[images_.bias]);
    float* const biases = packed + groups_ * group_floats();
    std::fill_n(packed, packed_floats(), 0.0F);
    for (int64_t o = 0; o < images_.out; ++o) {
      const float* const from = weights + o * images_.weight_strides[0];
      float* to = packed + o / kernel_.results * group_floats() + o % kernel_.results;
      for (int64_t c = 0; c < images_.in; ++c) {
        for (int64_t t = 0; t < images_.kernel[1]; ++t, to += kernel_.results) {
          *to = from[c * images_.weight_strides[1] + t * images_.weight_strides[3]];
        }
      }
      if (bias != nullptr) biases[o] = bias[o];
    }
  }

  // Computes results of image `image` starting at x.
  void run_piece(const ep_launch& launch, const float* packed, float* frame, int64_t image, int64_t x) const {
    const int64_t count = std::min(piece_, images_.dst_size[1] - x);
    const int64_t first = x - images_.pad[1];  // position of the frame in the line
    const int64_t begin = std::clamp<int64_t>(-first, 0, row_);
    const int64_t end = std::clamp<int64_t>(images_.src_size[1] - first, begin, row_);
    const float* src = floats(launch.operands[images_.src]) + image * images_.in * images_.src_size[1];
    for (int64_t c = 0; c < images_.in; ++c, src += images_.src_size[1]) {
      float* const line = frame + c * row_;
      std::fill_n(line, begin, 0.0F);
      std::copy(src + first + begin, src + first + end, line + begin);
      std::fill(line + end, line + row_, 0.0F);
    }
    Lines lines{};
    lines.src = frame;
    lines.src_row = row_;
    lines.dst_row = images_.dst_size[1];
    lines.channels = images_.in;
    lines.taps = images_.kernel[1];
    lines.step = images_.dilation[1];
    lines.count = count;
    for (int64_t group = 0; group < groups_; ++group) {
      const int64_t o = group * kernel_.results;
      const int64_t at = (image * images_.out + o) * lines.dst_row + x;
      lines.weights = packed + group * group_floats();
      lines.bias = packed + groups_ * group_floats() + o;
      lines.results = std::min(kernel_.results, images_.out - o);
      lines.dst = floats(launch.operands[0]) + at;
      lines.finish = finisher_.of(launch);
      if (lines.finish.other != nullptr) lines.finish.other += at;
      kernel_.run(lines);
    }
  }

  Images images_;
  LineKernel kernel_;
  Finisher finisher_;
  int32_t threads_;
  int64_t piece_;   // results per line and frame
  int64_t row_;     // elements of a row of the frame
  int64_t groups_;  // groups of result channels
  int64_t pieces_;  // pieces per line
};

}  // namespace

Refusal LineConvolution::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = why_no_images(device, desc, Channels::first)) return refusal;
  const ep_convolution_attributes& attributes = desc.attributes.convolution;
  if (attributes.spatial_rank != 1) return Refusal::because("%d spatial dims", attributes.spatial_rank);
  if (attributes.transposed != 0) return Refusal::because("a transposed convolution");
  if (attributes.groups != 1) return Refusal::because("%lld groups", static_cast<long long>(attributes.groups));
  if (attributes.stride[0] != 1) {
    return Refusal::because("a stride of %lld", static_cast<long long>(attributes.stride[0]));
  }
  const Images images(desc);
  const int64_t bytes = images.in * images.out * images.taps() * static_cast<int64_t>(sizeof(float));
  if (bytes > kWeightBytes) return Refusal::because("%lld bytes of weights", static_cast<long long>(bytes));
  if (images.dst_size[1] < kFewestResults) {
    return Refusal::because("lines of %lld results", static_cast<long long>(images.dst_size[1]));
  }
  return {};
}

Refusal LineConvolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                              ep_primitive_info&) {
  *out = make_primitive<LinesPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
