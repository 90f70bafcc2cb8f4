// Depthwise convolution with channels last, one row of results at a time. The results in the middle, whose taps all lie
// within the image, need one call of the kernel.
#include <algorithm>

#include "providers/cpu/convolution/convolution.h"
#include "providers/cpu/convolution/images.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

class DepthwisePrimitive final : public ep_primitive {
 public:
  DepthwisePrimitive(const ep_device& on, const ep_primitive_desc& desc, bool packed)
      : images_(images_of(desc)), kernel_(depthwise_kernel(on.simd)), finisher_(on, desc), packed_(packed) {
    // The range of results of a row whose taps all lie within the image.
    while (begin_ < images_.dst_size[1] && !whole(begin_)) ++begin_;
    end_ = begin_;
    while (end_ < images_.dst_size[1] && whole(end_)) ++end_;
  }

  uint64_t packed_bytes() const { return static_cast<uint64_t>(images_.taps() * images_.out) * sizeof(float); }
  uint64_t workspace(const ep_shape*) const override { return packed_ ? 0 : packed_bytes(); }
  bool has_workspace() const override { return !packed_; }

  ep_status pack(char* dst, const char* src, ep_error**) override {
    pack_taps(reinterpret_cast<float*>(dst), reinterpret_cast<const float*>(src));
    return EP_STATUS_OK;
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (!packed_ && launch.workspace.memory == nullptr) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "The launch of a convolution has no workspace.");
    }
    const Finish finish = finisher_.of(launch);
    const float* weights = floats(launch.operands[images_.weight]);
    if (!packed_) {
      pack_taps(floats(launch.workspace), weights);
      weights = floats(launch.workspace);
    }
    const int64_t nanoseconds = images_.pixels() * images_.out * (images_.taps() + 2) / 40;
    const WideLease lease(device->threads, nanoseconds);
    const auto body = [&](int32_t part, int32_t parts) {
      const int64_t lines = images_.count * images_.dst_size[0];
      Line line{launch, weights, finish};
      for (int64_t i = lines * part / parts; i < lines * (part + 1) / parts; ++i) run_line(line, i);
    };
    run_parts(lease.width(), nanoseconds, body);
    finisher_.end(launch, lease.width());
    return EP_STATUS_OK;
  }

 private:
  // Data shared by the rows of a part, and buffers for their taps.
  struct Line {
    Line(const ep_launch& launch, const float* weights, const Finish& finish)
        : launch(launch), weights(weights), finish(finish) {}
    const ep_launch& launch;
    const float* weights;
    const Finish& finish;
    std::vector<int64_t> offsets;
    std::vector<int32_t> places;
  };

  static float* floats(ep_buffer buffer) { return reinterpret_cast<float*>(address_of(buffer)); }

  bool whole(int64_t x) const {
    int64_t first, last;
    images_.inside(1, x, &first, &last);
    return first == 0 && last == images_.kernel[1];
  }

  void pack_taps(float* dst, const float* src) const {
    for (int64_t tap = 0; tap < images_.taps(); ++tap) {
      const float* from = src + images_.first_weight + tap / images_.kernel[1] * images_.weight_strides[2] +
                          tap % images_.kernel[1] * images_.weight_strides[3];
      for (int64_t c = 0; c < images_.out; ++c) dst[tap * images_.out + c] = from[c * images_.weight_strides[0]];
    }
  }

  void run_line(Line& line, int64_t number) const {
    for (int64_t x = 0; x < begin_; ++x) run_results(line, number, x, x + 1);
    if (begin_ < end_) run_results(line, number, begin_, end_);
    for (int64_t x = end_; x < images_.dst_size[1]; ++x) run_results(line, number, x, x + 1);
  }

  // Computes results [begin, end) of row `number` (counted over all images), which all have the same taps.
  void run_results(Line& line, int64_t number, int64_t begin, int64_t end) const {
    const int64_t y = number % images_.dst_size[0], image = number / images_.dst_size[0];
    int64_t first[2], last[2];
    images_.inside(0, y, &first[0], &last[0]);
    images_.inside(1, begin, &first[1], &last[1]);
    line.offsets.clear();
    line.places.clear();
    const int64_t src_row = images_.src_size[1] * images_.in;
    for (int64_t ky = first[0]; ky < last[0]; ++ky) {
      for (int64_t kx = first[1]; kx < last[1]; ++kx) {
        line.offsets.push_back((ky - first[0]) * images_.dilation[0] * src_row +
                               (kx - first[1]) * images_.dilation[1] * images_.in);
        line.places.push_back(static_cast<int32_t>(ky * images_.kernel[1] + kx));
      }
    }
    const bool any = !line.places.empty();
    const int64_t top = y * images_.stride[0] - images_.pad[0] + first[0] * images_.dilation[0];
    const int64_t left = begin * images_.stride[1] - images_.pad[1] + first[1] * images_.dilation[1];
    const int64_t place = (number * images_.dst_size[1] + begin) * images_.out;
    DepthwiseRow row;
    row.src = floats(line.launch.operands[images_.src]) +
              (any ? (image * images_.src_size[0] + top) * src_row + left * images_.in : 0);
    row.offsets = line.offsets.data();
    row.places = line.places.data();
    row.taps = static_cast<int64_t>(line.places.size());
    row.step = images_.stride[1] * images_.in;
    row.weights = line.weights;
    row.bias = images_.bias < 0 ? nullptr : floats(line.launch.operands[images_.bias]);
    row.dst = floats(line.launch.operands[0]) + place;
    row.channels = images_.out;
    row.results = end - begin;
    row.finish = line.finish;
    if (row.finish.other != nullptr) row.finish.other += place;
    kernel_(row);
  }

  Images images_;
  DepthwiseKernel kernel_;
  Finisher finisher_;
  bool packed_;
  int64_t begin_ = 0, end_ = 0;
};

}  // namespace

Refusal DepthwiseConvolution::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = why_no_images(device, desc)) return refusal;
  return why_not_depthwise(desc);
}

Refusal DepthwiseConvolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                   ep_primitive_info& info) {
  const int32_t weight = find_operand(desc, EP_ROLE_WEIGHT);
  const bool packed = (desc.operands[weight].flags & EP_OPERAND_FLAG_CONSTANT) != 0;
  auto* made = make_primitive<DepthwisePrimitive>(device, device, desc, packed);
  if (packed) {
    info.pack_operand = 1 + static_cast<uint32_t>(weight);
    info.pack_bytes = made->packed_bytes();
    const bool reversed = desc.attributes.convolution.transposed != 0;
    info.pack_layout = packed_layout(reversed ? "depthwise, reversed" : "depthwise", 0, 0);
  }
  *out = made;
  return {};
}

}  // namespace tenon::provider::cpu
