// Convolution of one small plane with channels first and a large weight that may change: a product of the unpacked
// weight and the elements under its taps.
#include <algorithm>
#include <vector>

#include "providers/cpu/convolution/convolution.h"
#include "providers/cpu/convolution/images.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kFewestPixels = 4;
constexpr int64_t kMostPixels = 64;
constexpr int64_t kMostSingles = 4;           // pixels beyond the last whole vector that are computed without vectors
constexpr int64_t kColumnBytes = 640 * 1024;  // so that columns stay in the L2 cache
constexpr int64_t kWeightBytes = 3 << 20;     // least size of the weight; packing a smaller one in the cache is faster
constexpr int64_t kPointBytes = 1 << 20;      // bytes of the weights of one tap

class PixelsPrimitive final : public ep_primitive {
 public:
  PixelsPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : images_(desc), kernel_(pixel_kernel(on.simd)), finisher_(on, desc), threads_(on.threads) {
    const int64_t pixels = images_.pixels();
    singles_ = pixels % kernel_.lanes <= kMostSingles ? pixels % kernel_.lanes : 0;
    row_ = (pixels - singles_ + kernel_.lanes - 1) / kernel_.lanes * kernel_.lanes;
    depth_ = images_.in * images_.taps();
    for (int axis = 0; axis < 2; ++axis) {
      const int64_t reach =
          (images_.dst_size[axis] - 1) * images_.stride[axis] + (images_.kernel[axis] - 1) * images_.dilation[axis] + 1;
      frame_[axis] = std::max(reach, images_.src_size[axis] + images_.pad[axis]);
    }
    for (int64_t y = 0; y < images_.dst_size[0]; ++y) {
      for (int64_t x = 0; x < images_.dst_size[1]; ++x) {
        places_.push_back(y * images_.stride[0] * frame_[1] + x * images_.stride[1]);
      }
    }
  }

  uint64_t workspace(const ep_shape*) const override {
    return static_cast<uint64_t>(column_floats() + threads_ * frame_floats()) * sizeof(float);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const int64_t nanoseconds = images_.pixels() * images_.out * depth_ / 50;
    const WideLease lease(threads_, nanoseconds);
    const int64_t groups = (images_.out + kernel_.results - 1) / kernel_.results;
    const Finish finish = finisher_.of(launch);
    share(lease, images_.in, images_.pixels() * depth_, [&](int64_t begin, int64_t end) {
      float* const frame = floats(launch.workspace) + column_floats() + runner() * frame_floats();
      std::fill_n(frame, frame_floats(), 0.0F);
      for (int64_t c = begin; c < end; ++c) spread(launch, frame, c);
    });
    share(lease, groups, nanoseconds, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) multiply(launch, finish, group * kernel_.results);
    });
    finisher_.end(launch, lease.width());
    return EP_STATUS_OK;
  }

 private:
  static float* floats(ep_buffer buffer) { return reinterpret_cast<float*>(address_of(buffer)); }
  int64_t frame_floats() const { return frame_[0] * frame_[1]; }
  int64_t column_floats() const { return depth_ * (row_ + singles_); }

  // Calls body(begin, end) for ranges that cover [0, count).
  template <class Body>
  static void share(const WideLease& lease, int64_t count, int64_t nanoseconds, const Body& body) {
    run_parts(lease.width(), nanoseconds,
              [&](int32_t part, int32_t parts) { body(count * part / parts, count * (part + 1) / parts); });
  }

  // Copies channel c into a frame of zeros, and from there the elements under each tap.
  void spread(const ep_launch& launch, float* frame, int64_t c) const {
    const float* const src = floats(launch.operands[images_.src]) + c * images_.src_size[0] * images_.src_size[1];
    for (int64_t y = 0; y < images_.src_size[0]; ++y) {
      std::copy_n(src + y * images_.src_size[1], images_.src_size[1],
                  frame + (y + images_.pad[0]) * frame_[1] + images_.pad[1]);
    }
    float* const single = floats(launch.workspace) + depth_ * row_;
    const auto pixels = static_cast<int64_t>(places_.size());
    for (int64_t t = 0; t < images_.taps(); ++t) {
      const float* const from =
          frame + t / images_.kernel[1] * images_.dilation[0] * frame_[1] + t % images_.kernel[1] * images_.dilation[1];
      const int64_t k = c * images_.taps() + t;
      float* const column = floats(launch.workspace) + k * row_;
      for (int64_t i = 0; i < pixels - singles_; ++i) column[i] = from[places_[static_cast<size_t>(i)]];
      std::fill(column + pixels - singles_, column + row_, 0.0F);
      for (int64_t i = 0; i < singles_; ++i) {
        single[i * depth_ + k] = from[places_[static_cast<size_t>(pixels - singles_ + i)]];
      }
    }
  }

  // Computes a few result channels starting at o.
  void multiply(const ep_launch& launch, const Finish& finish, int64_t o) const {
    PixelProducts products{};
    products.columns = floats(launch.workspace);
    products.row = row_;
    products.single = products.columns + depth_ * row_;
    products.weights = floats(launch.operands[images_.weight]) + o * depth_;
    products.bias = images_.bias < 0 ? nullptr : floats(launch.operands[images_.bias]) + o;
    products.dst_row = images_.pixels();
    products.dst = floats(launch.operands[0]) + o * products.dst_row;
    products.depth = depth_;
    products.results = std::min(kernel_.results, images_.out - o);
    products.vectors = row_ / kernel_.lanes;
    products.singles = singles_;
    products.finish = finish;
    if (finish.other != nullptr) products.finish.other += o * products.dst_row;
    kernel_.run(products);
  }

  Images images_;
  PixelKernel kernel_;
  Finisher finisher_;
  int32_t threads_;
  int64_t row_;                  // pixels in whole vectors
  int64_t singles_;              // remaining pixels
  int64_t depth_;                // channels times taps
  int64_t frame_[2];             // rows and columns
  std::vector<int64_t> places_;  // for each pixel: the position of its first tap in the frame
};

}  // namespace

Refusal PixelConvolution::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = why_no_images(device, desc, Channels::first)) return refusal;
  const ep_convolution_attributes& attributes = desc.attributes.convolution;
  const ep_operand_desc& weight = *operand(desc, EP_ROLE_WEIGHT);
  if (attributes.transposed != 0) return Refusal::because("a transposed convolution");
  if (attributes.groups != 1) return Refusal::because("%lld groups", static_cast<long long>(attributes.groups));
  if ((weight.flags & EP_OPERAND_FLAG_CONSTANT) != 0) return Refusal::because("a weight that is packed once");
  const Images images(desc);
  if (images.pad[0] < 0 || images.pad[1] < 0) return Refusal::because("negative padding");
  if (images.count != 1 || images.pixels() < kFewestPixels || images.pixels() > kMostPixels)
    return Refusal::because("%lld pixels of %lld images", static_cast<long long>(images.pixels()),
                            static_cast<long long>(images.count));
  int64_t bytes = sizeof(float);
  for (int32_t axis = weight.rank - 1; axis >= 0; --axis) {
    if (weight.dims[axis] != 1 && weight.strides[axis] * static_cast<int64_t>(sizeof(float)) != bytes)
      return Refusal::because("a weight that is not row-major");
    bytes *= weight.dims[axis];
  }
  const int64_t columns = images.in * images.taps() * images.pixels() * static_cast<int64_t>(sizeof(float));
  if (bytes < (images.taps() == 1 ? kPointBytes : kWeightBytes) || columns > kColumnBytes)
    return Refusal::because("%lld bytes of weights, %lld bytes of pixels under their taps",
                            static_cast<long long>(bytes), static_cast<long long>(columns));
  return {};
}

Refusal PixelConvolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                               ep_primitive_info&) {
  *out = make_primitive<PixelsPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
