// Depthwise convolution with channels first: one plane at a time.
#include <algorithm>
#include <vector>

#include "providers/cpu/convolution/convolution.h"
#include "providers/cpu/convolution/images.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kVector = 16;             // the most elements of any vector
constexpr int64_t kFrameBytes = 24 * 1024;  // so that a frame stays in the L1 cache
constexpr int64_t kPage = 1024;             // floats per 4 KiB

// Copies a plane into a frame of zeros, a few rows of results at a time, so that every tap lies within the frame.
class DepthwisePlanesPrimitive final : public ep_primitive {
 public:
  DepthwisePlanesPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : images_(images_of(desc)), kernel_(depthwise_plane_kernel(on.simd)), finisher_(on, desc), threads_(on.threads) {
    const int64_t results = (images_.dst_size[1] + kVector - 1) / kVector * kVector;
    row_ = results * images_.stride[1] + (images_.kernel[1] - 1) * images_.dilation[1];
    first_ = std::clamp<int64_t>(images_.pad[1], 0, row_);
    last_ = std::clamp<int64_t>(images_.src_size[1] + images_.pad[1], first_, row_);
    const int64_t lines = kFrameBytes / static_cast<int64_t>(sizeof(float)) / row_;
    const int64_t rows = (lines - (images_.kernel[0] - 1) * images_.dilation[0] - 1) / images_.stride[0] + 1;
    rows_ =
        std::clamp<int64_t>(rows, std::min<int64_t>(8, images_.dst_size[0]), std::max<int64_t>(images_.dst_size[0], 1));
  }

  uint64_t workspace(const ep_shape*) const override {
    return static_cast<uint64_t>(threads_ * (frame_floats() + kPage)) * sizeof(float);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const Finish finish = finisher_.of(launch);
    const float* const src = floats(launch.operands[images_.src]);
    const float* const weights = floats(launch.operands[images_.weight]);
    const float* const bias = images_.bias < 0 ? nullptr : floats(launch.operands[images_.bias]);
    const int64_t planes = images_.count * images_.out;
    const int64_t src_plane = images_.src_size[0] * images_.src_size[1];
    const int64_t dst_plane = images_.dst_size[0] * images_.dst_size[1];
    const int64_t nanoseconds = images_.pixels() * images_.out * (images_.taps() + 4) / 40;
    const WideLease lease(threads_, nanoseconds);
    const auto body = [&](int32_t part, int32_t parts) {
      std::vector<float> taps(static_cast<size_t>(images_.taps()));
      float* const frame =
          away_from(floats(launch.operands[0]), floats(launch.workspace) + runner() * (frame_floats() + kPage));
      std::fill_n(frame, frame_floats(), 0.0F);
      for (int64_t i = planes * part / parts; i < planes * (part + 1) / parts; ++i) {
        const int64_t channel = i % images_.out;
        for (int64_t t = 0; t < images_.taps(); ++t) taps[static_cast<size_t>(t)] = weight_of(weights, channel, t);
        DepthwisePlane plane = shared();
        plane.weights = taps.data();
        plane.bias = bias == nullptr ? 0 : bias[channel];
        plane.src = frame;
        for (int64_t y = 0; y < images_.dst_size[0]; y += rows_) {
          plane.dst_rows = std::min(rows_, images_.dst_size[0] - y);
          fill(frame, src + i * src_plane, y, plane.dst_rows);
          const int64_t at = i * dst_plane + y * images_.dst_size[1];
          plane.dst = floats(launch.operands[0]) + at;
          plane.finish = finish;
          if (finish.other != nullptr) plane.finish.other += at;
          kernel_(plane);
        }
      }
    };
    run_parts(lease.width(), nanoseconds, body);
    finisher_.end(launch, lease.width());
    return EP_STATUS_OK;
  }

 private:
  static float* floats(ep_buffer buffer) { return reinterpret_cast<float*>(address_of(buffer)); }

  // An address in the kPage floats from `room` on that is half a page from `other`, modulo a page: processors take
  // loads and stores whose addresses agree in their low 12 bits for dependent at first.
  static float* away_from(const float* other, float* room) {
    const auto distance =
        static_cast<int64_t>((reinterpret_cast<uintptr_t>(other) - reinterpret_cast<uintptr_t>(room)) / sizeof(float));
    return room + (distance + kPage / 2) % kPage / kVector * kVector;
  }

  float weight_of(const float* weights, int64_t channel, int64_t tap) const {
    return weights[images_.first_weight + channel * images_.weight_strides[0] +
                   tap / images_.kernel[1] * images_.weight_strides[2] +
                   tap % images_.kernel[1] * images_.weight_strides[3]];
  }
  int64_t lines_of(int64_t rows) const {
    return (rows - 1) * images_.stride[0] + (images_.kernel[0] - 1) * images_.dilation[0] + 1;
  }
  int64_t frame_floats() const { return lines_of(rows_) * row_; }

  // Copies the elements under the taps of `rows` rows of results starting at y. The rest of the frame stays zero.
  void fill(float* frame, const float* plane, int64_t y, int64_t rows) const {
    const int64_t top = y * images_.stride[0] - images_.pad[0];
    for (int64_t line = top; line < top + lines_of(rows); ++line, frame += row_) {
      if (line < 0 || line >= images_.src_size[0]) {
        std::fill(frame + first_, frame + last_, 0.0F);
      } else {
        std::copy_n(plane + line * images_.src_size[1] + first_ - images_.pad[1], last_ - first_, frame + first_);
      }
    }
  }

  // The arguments that are equal for all planes.
  DepthwisePlane shared() const {
    DepthwisePlane plane{};
    plane.src_row = row_;
    plane.dst_row = images_.dst_size[1];
    for (int axis = 0; axis < 2; ++axis) {
      plane.kernel[axis] = images_.kernel[axis];
      plane.stride[axis] = images_.stride[axis];
      plane.dilation[axis] = images_.dilation[axis];
    }
    return plane;
  }

  Images images_;
  DepthwisePlaneKernel kernel_;
  Finisher finisher_;
  int32_t threads_;
  int64_t row_;           // elements of a row of the frame
  int64_t first_, last_;  // the elements of a frame row that come from SRC
  int64_t rows_;          // rows of results per frame
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
