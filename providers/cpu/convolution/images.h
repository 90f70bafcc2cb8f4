// What convolutions of images share: sizes, operands, and what follows the sum.
#pragma once

#include <vector>

#include "providers/cpu/convolution/kernel.h"
#include "providers/cpu/elementwise/tail.h"
#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// Sizes of a convolution over images; one of 1 spatial dim has images of one row.
struct Images {
  Images() = default;
  explicit Images(const ep_primitive_desc& desc);

  int64_t count = 1, in = 1, out = 1;  // images, channels of SRC, channels of DST
  int64_t src_size[2] = {1, 1}, dst_size[2] = {1, 1};
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1}, pad[2] = {0, 0};
  // Of result channel, channel, and the taps of rows and columns; of a transposed one, of channel and result channel.
  int64_t weight_strides[4] = {0, 0, 0, 0};
  int64_t first_weight = 0;                  // where tap 0 lies in WEIGHT
  int32_t src = -1, weight = -1, bias = -1;  // numbers of the operands; bias: -1 if there is none

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t pixels() const { return count * dst_size[0] * dst_size[1]; }
  // The taps [first, last) along `axis` that meet SRC, of the result at `at`.
  void inside(int axis, int64_t at, int64_t* first, int64_t* last) const;
};

// Why an operand of `desc` is not f32 in memory. Pure.
Refusal why_not_f32(const ep_primitive_desc& desc);

// Why the epilogues of `desc` can be neither a Finish nor a Tail. Pure.
Refusal why_no_finisher(const ep_device& device, const ep_primitive_desc& desc);

enum class Channels : uint8_t { last, first };

// True if channels are innermost and the elements fill their memory.
bool is_channels_last(const ep_operand_desc& operand);

// Why `desc` is no f32 convolution with channels there and epilogues that we compute. Pure.
Refusal why_no_images(const ep_device& device, const ep_primitive_desc& desc, Channels channels = Channels::last);

// Why a convolution of images has not as many groups as channels and results, or is transposed. Pure.
Refusal why_not_depthwise(const ep_primitive_desc& desc);

// What the way to channels last and back costs: a reorder takes two thirds of the time of a copy (../README.md). Pure.
uint64_t penalty_of_planes(const ep_primitive_desc& desc);

// The epilogues of a descriptor: the first ones as a Finish, the others as a Tail.
class Finisher {
 public:
  Finisher(const ep_device& device, const ep_primitive_desc& desc);

  // That of `launch`.
  Finish of(const ep_launch& launch) const;
  // What follows the launch: the Tail, over a result of NaN if a bound is NaN.
  void end(const ep_launch& launch, int32_t width) const;

 private:
  struct Bound {
    bool given = false;
    int32_t scalar = -1;  // launch scalar; -1: zero
    float of(const ep_launch& launch) const {
      return scalar < 0 ? 0.0f : static_cast<float>(launch.scalars[scalar].value.f64);
    }
  };
  int32_t other_ = -1;  // number of the operand in the descriptor
  Bound low_, high_;
  int64_t elements_ = 1;  // of DST
  Tail tail_;
};

// Equal for packed weights of one layout.
uint64_t packed_layout(const char* form, int64_t columns, int64_t lanes);

}  // namespace tenon::provider::cpu
