// Accuracy: the tiers that a device states for its element types (ep_api.h, "Accuracy"), and the check that they
// satisfy the demand of a primitive. The numbers of each tier are in ep_api/accuracy.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// From the lowest to the highest tier that a program can demand.
enum class Tier : uint8_t {
  relaxed = EP_PRECISION_RELAXED,
  portable = EP_PRECISION_PORTABLE,
  full = EP_PRECISION_FULL
};

// "full"
std::string_view tier_name(Tier tier);
std::optional<Tier> tier_from_name(std::string_view name);

// The statement of a device, as in ep_device_info: bit 1 << dtype. No bit: full tier, and denormals kept.
struct Accuracy {
  uint64_t portable = 0;
  uint64_t relaxed = 0;
  uint64_t flushed = 0;

  Tier tier(DType dtype) const {
    const uint64_t bit = uint64_t{1} << static_cast<int32_t>(dtype);
    return (relaxed & bit) != 0 ? Tier::relaxed : (portable & bit) != 0 ? Tier::portable : Tier::full;
  }
  bool flushes(DType dtype) const { return (flushed >> static_cast<int32_t>(dtype) & 1) != 0; }
};

// True if the primitive only moves elements. Every tier keeps their bits, also of denormals.
bool moves_elements(const ep_primitive_desc& desc);

// The tier of the results of `desc`: the lowest tier of its floating operands, whatever `desc` demands.
Tier tier_of(const ep_primitive_desc& desc, const Accuracy& accuracy);

// The tier of the results of a primitive that the device has made from `desc`. A demand in `desc` is satisfied by the
// primitive. With EP_PRECISION_RELAXED the device computes less exactly than it states.
Tier tier_kept(const ep_primitive_desc& desc, const Accuracy& accuracy);

// The reason why a device that states `accuracy` does not satisfy the demand of `desc` ("f32 is of tier portable, and
// the program demands full"). Empty if it does.
std::string why_below(const ep_primitive_desc& desc, const Accuracy& accuracy);

// For a floating dtype: the sign bit, and the bits of the least normal number. Denormal numbers lie between 0 and that
// number.
uint64_t sign_bit(DType dtype);
uint64_t least_normal(DType dtype);
bool is_denormal(DType dtype, uint64_t bits);

// Bit 1 << dtype for each floating element type.
uint64_t floating_dtypes();

// If the device satisfies the demand of `desc` anyway, sets it to EP_PRECISION_DEFAULT. Otherwise leaves `desc` as it
// is. Returns why_below.
std::string settle_demand(ep_primitive_desc* desc, const Accuracy& accuracy);

// The first error in a device's statement, such as "states two tiers for f32". Empty if there is none.
std::string why_no_accuracy(const Accuracy& accuracy);

}  // namespace tenon
#pragma GCC visibility pop
