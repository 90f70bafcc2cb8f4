// depthwise convolution with channels first: one plane at a time.
#include <vector>

#include "providers/cpu/convolution/convolution.h"
#include "providers/cpu/convolution/images.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

class DepthwisePlanesPrimitive final : public ep_primitive {
 public:
  DepthwisePlanesPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : images_(desc), kernel_(depthwise_plane_kernel(on.simd)), finisher_(on, desc) {
    for (int64_t y = 0; y < images_.dst_size[0]; ++y) {
      int64_t first, last;
      images_.inside(0, y, &first, &last);
      inside_.insert(inside_.end(), {first, last});
    }
    while (begin_ < images_.dst_size[1] && !whole(begin_)) ++begin_;
    end_ = begin_;
    while (end_ < images_.dst_size[1] && whole(end_)) ++end_;
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const Finish finish = finisher_.of(launch);
    const float* const src = floats(launch.operands[images_.src]);
    const float* const weights = floats(launch.operands[images_.weight]);
    const float* const bias = images_.bias < 0 ? nullptr : floats(launch.operands[images_.bias]);
    const int64_t planes = images_.count * images_.out;
    const int64_t src_plane = images_.src_size[0] * images_.src_size[1];
    const int64_t dst_plane = images_.dst_size[0] * images_.dst_size[1];
    const int64_t nanoseconds = images_.pixels() * images_.out * (images_.taps() + 2) / 40;
    const WideLease lease(device->threads, nanoseconds);
    const auto body = [&](int32_t part, int32_t parts) {
      std::vector<float> taps(static_cast<size_t>(images_.taps()));
      for (int64_t i = planes * part / parts; i < planes * (part + 1) / parts; ++i) {
        const int64_t channel = i % images_.out;
        for (int64_t t = 0; t < images_.taps(); ++t) taps[static_cast<size_t>(t)] = weight_of(weights, channel, t);
        DepthwisePlane plane = shared();
        plane.weights = taps.data();
        plane.bias = bias == nullptr ? 0 : bias[channel];
        plane.src = src + i * src_plane;
        plane.dst = floats(launch.operands[0]) + i * dst_plane;
        plane.finish = finish;
        if (finish.other != nullptr) plane.finish.other += i * dst_plane;
        kernel_(plane);
      }
    };
    lease.width() == 1 ? body(0, 1) : run_parts(lease.width(), nanoseconds, body);
    finisher_.end(launch, lease.width());
    return EP_STATUS_OK;
  }

 private:
  static float* floats(ep_buffer buffer) { return reinterpret_cast<float*>(address_of(buffer)); }

  bool whole(int64_t x) const {
    int64_t first, last;
    images_.inside(1, x, &first, &last);
    return first == 0 && last == images_.kernel[1];
  }
  float weight_of(const float* weights, int64_t channel, int64_t tap) const {
    return weights[channel * images_.weight_strides[0] + tap / images_.kernel[1] * images_.weight_strides[2] +
                   tap % images_.kernel[1] * images_.weight_strides[3]];
  }
  // What all planes have in common.
  DepthwisePlane shared() const {
    DepthwisePlane plane{};
    plane.src_row = images_.src_size[1];
    plane.dst_rows = images_.dst_size[0];
    plane.dst_row = images_.dst_size[1];
    for (int axis = 0; axis < 2; ++axis) {
      plane.kernel[axis] = images_.kernel[axis];
      plane.stride[axis] = images_.stride[axis];
      plane.dilation[axis] = images_.dilation[axis];
      plane.pad[axis] = images_.pad[axis];
    }
    plane.inside = inside_.data();
    plane.begin = begin_;
    plane.end = end_;
    return plane;
  }

  Images images_;
  DepthwisePlaneKernel kernel_;
  Finisher finisher_;
  std::vector<int64_t> inside_;  // for each row of results, the taps [first, last) along columns that meet SRC
  int64_t begin_ = 0, end_ = 0;  // the results of a row whose taps along it all meet SRC
};

}  // namespace

Refusal DepthwisePlanes::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = why_no_images(device, desc, Channels::first)) return refusal;
  if (Refusal refusal = why_not_depthwise(desc)) return refusal;
  const int64_t step = desc.attributes.convolution.stride[desc.attributes.convolution.spatial_rank - 1];
  if (step > 2) return Refusal::because("a stride of %lld along rows", static_cast<long long>(step));
  info.penalty_bytes = penalty_of_planes(desc);
  return {};
}

Refusal DepthwisePlanes::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                              ep_primitive_info&) {
  *out = make_primitive<DepthwisePlanesPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
