// Accuracy: the tiers that a device states for its element types (ep_api.h, "Accuracy"), and whether they are what a
// primitive demands. The numbers of each tier stand in ep_api/accuracy.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// From the lowest to the highest, as the program demands them.
enum class Tier : uint8_t { fast = EP_PRECISION_FAST, relaxed = EP_PRECISION_RELAXED, full = EP_PRECISION_FULL };

// "full"
std::string_view tier_name(Tier tier);
std::optional<Tier> tier_from_name(std::string_view name);

// What a device states, as in ep_device_info: bit 1 << dtype. None: full, and denormals kept.
struct Accuracy {
  uint64_t relaxed = 0;
  uint64_t fast = 0;
  uint64_t flushed = 0;

  Tier tier(DType dtype) const {
    const uint64_t bit = uint64_t{1} << static_cast<int32_t>(dtype);
    return (fast & bit) != 0 ? Tier::fast : (relaxed & bit) != 0 ? Tier::relaxed : Tier::full;
  }
  bool flushes(DType dtype) const { return (flushed >> static_cast<int32_t>(dtype) & 1) != 0; }
};

// True if the primitive only moves elements: every tier keeps their bits, denormals too.
bool moves_elements(const ep_primitive_desc& desc);

// The tier that the results of `desc` keep: the lowest of its floating operands, whatever it demands.
Tier tier_of(const ep_primitive_desc& desc, const Accuracy& accuracy);

// The tier that the results of a primitive keep which the device has made from `desc`: a demand that reached the device
// is one that the primitive keeps, and under EP_PRECISION_FAST the device may do less than it states.
Tier tier_kept(const ep_primitive_desc& desc, const Accuracy& accuracy);

// Why a device that states `accuracy` does not keep what `desc` demands ("f32 is of tier relaxed, and the program
// demands full"); empty: it does.
std::string why_below(const ep_primitive_desc& desc, const Accuracy& accuracy);

// Of a floating dtype: the bit of the sign, and the bits of the least normal number. Between them and 0 lie the
// denormal numbers.
uint64_t sign_bit(DType dtype);
uint64_t least_normal(DType dtype);
bool is_denormal(DType dtype, uint64_t bits);

// Bit 1 << dtype for each floating element type.
uint64_t floating_dtypes();

// Takes a demand that the device keeps anyway out of `desc`: it holds EP_PRECISION_DEFAULT then. Else `desc` stays, and
// the result is why_below.
std::string settle_demand(ep_primitive_desc* desc, const Accuracy& accuracy);

// The first fault of what a device states, such as "states two tiers for f32"; empty: none.
std::string why_no_accuracy(const Accuracy& accuracy);

}  // namespace tenon
#pragma GCC visibility pop
