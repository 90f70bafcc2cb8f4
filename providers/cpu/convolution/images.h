// Shared by all convolutions of images: sizes, operands, and the epilogues.
#pragma once

#include <vector>

#include "providers/cpu/convolution/kernel.h"
#include "providers/cpu/elementwise/tail.h"
#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// Sizes of a convolution over images. With 1 spatial dim, an image has one row.
struct Images {
  Images() = default;
  explicit Images(const ep_primitive_desc& desc);

  int64_t count = 1, in = 1, out = 1;  // images, channels of SRC, channels of DST
  int64_t src_size[2] = {1, 1}, dst_size[2] = {1, 1};
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1}, pad[2] = {0, 0};
  // Strides of result channel, channel, kernel row and kernel column. Transposed: channel, then result channel.
  int64_t weight_strides[4] = {0, 0, 0, 0};
  int64_t first_weight = 0;                  // offset of tap 0 in WEIGHT
  int32_t src = -1, weight = -1, bias = -1;  // operand numbers; bias is -1 if absent

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t pixels() const { return count * dst_size[0] * dst_size[1]; }
  // The taps [first, last) along `axis` that lie within SRC for the result at index `at`.
  void inside(int axis, int64_t at, int64_t* first, int64_t* last) const;
};

// The sizes of `desc`. A transposed convolution of stride 1 becomes a convolution with reversed taps. Pure.
Images images_of(const ep_primitive_desc& desc);

// The reason why an operand of `desc` is not f32 in memory. Pure.
Refusal why_not_f32(const ep_primitive_desc& desc);

// The reason why an epilogue of `desc` fits neither Finish nor Tail. Pure.
Refusal why_no_finisher(const ep_device& device, const ep_primitive_desc& desc);

enum class Channels : uint8_t { last, first };

// True if channels are innermost and the operand is dense.
bool is_channels_last(const ep_operand_desc& operand);

// The reason why `desc` is not an f32 convolution with this position of channels and supported epilogues. Pure.
Refusal why_no_images(const ep_device& device, const ep_primitive_desc& desc, Channels channels = Channels::last);

// The reason why a convolution is not depthwise, or is transposed with a stride. Pure.
Refusal why_not_depthwise(const ep_primitive_desc& desc);

// The cost of reordering to channels last and back: a reorder takes two thirds of the time of a copy (`penalty_bytes`).
// Pure.
uint64_t penalty_of_planes(const ep_primitive_desc& desc);

// The epilogues of a descriptor: the first ones run as a Finish, the others as a Tail.
class Finisher {
 public:
  Finisher(const ep_device& device, const ep_primitive_desc& desc);

  // The Finish of one launch.
  Finish of(const ep_launch& launch) const;
  // Runs the Tail after the launch. If a bound is NaN, the result is set to NaN first.
  void end(const ep_launch& launch, int32_t width) const;

 private:
  struct Bound {
    bool given = false;
    int32_t scalar = -1;  // number of the launch scalar; -1: zero
    float of(const ep_launch& launch) const {
      return scalar < 0 ? 0.0f : static_cast<float>(launch.scalars[scalar].value.f64);
    }
  };
  int32_t other_ = -1;  // operand number in the descriptor
  Bound low_, high_;
  int64_t elements_ = 1;  // elements of DST
  Tail tail_;
};

// A number that is equal for packed weights with equal layouts.
uint64_t packed_layout(const char* form, int64_t columns, int64_t lanes);

}  // namespace tenon::provider::cpu
