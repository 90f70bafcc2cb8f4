// Keys: unsigned integers that order like the elements, by the rules above ep_sort_attributes in ep_api.h. -0 has the
// key of 0, and every NaN has the greatest key.
#pragma once

#include <cstdint>

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

enum class KeyMode : uint8_t { UNSIGNED, SIGNED, FLOAT };

// Conversion between elements of a dtype and keys. Bits is the unsigned type of the element's size.
template <class U, KeyMode mode_>
struct KeyType {
  using Bits = U;
  static constexpr KeyMode mode = mode_;
  static constexpr U sign = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  U infinity = 0;  // for floats: the greatest magnitude that is not NaN

  U key(U bits) const {
    if constexpr (mode == KeyMode::UNSIGNED) return bits;
    if constexpr (mode == KeyMode::SIGNED) return static_cast<U>(bits ^ sign);
    const auto magnitude = static_cast<U>(bits & static_cast<U>(~sign));
    const U mask = (bits & sign) != 0 ? static_cast<U>(~U{0}) : sign;
    auto key = static_cast<U>(bits ^ mask);
    if (magnitude == 0) key = sign;
    return magnitude > infinity ? static_cast<U>(~U{0}) : key;
  }
  // Returns the element for a key; the sign of 0 and the bits of NaN are lost.
  U bits(U key) const {
    if constexpr (mode == KeyMode::UNSIGNED) return key;
    if constexpr (mode == KeyMode::SIGNED) return static_cast<U>(key ^ sign);
    return (key & sign) != 0 ? static_cast<U>(key ^ sign) : static_cast<U>(~key);
  }
  // True for -0 and NaN, whose keys other elements share.
  bool shares_key(U bits) const {
    if constexpr (mode != KeyMode::FLOAT) return false;
    const auto magnitude = static_cast<U>(bits & static_cast<U>(~sign));
    return bits == sign || magnitude > infinity;
  }
  bool is_nan_key(U key) const { return mode == KeyMode::FLOAT && key == static_cast<U>(~U{0}); }
};

// True if elements of `dtype` have keys.
constexpr bool has_keys(int32_t dtype) { return dtype_size(dtype) != 0 && dtype_size(dtype) <= 8; }

constexpr uint64_t infinity_bits(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f64: return UINT64_C(0x7ff0000000000000);
    case EP_DTYPE_f32: return 0x7f800000;
    case EP_DTYPE_f16: return 0x7c00;
    case EP_DTYPE_bf16: return 0x7f80;
    case EP_DTYPE_f8e5m2: return 0x7c;
    default: return 0x7e;  // f8e4m3fn, which has no infinity
  }
}

// Calls visit(KeyType) for `dtype`.
template <class Visit>
auto with_key_type(int32_t dtype, Visit&& visit) {
  const auto sized = [&](auto bits) {
    using U = decltype(bits);
    switch (dtype_class(dtype)) {
      case DTypeClass::FLOAT: return visit(KeyType<U, KeyMode::FLOAT>{static_cast<U>(infinity_bits(dtype))});
      case DTypeClass::INT: return visit(KeyType<U, KeyMode::SIGNED>{});
      default: return visit(KeyType<U, KeyMode::UNSIGNED>{});
    }
  };
  switch (dtype_size(dtype)) {
    case 1: return sized(uint8_t{});
    case 2: return sized(uint16_t{});
    case 4: return sized(uint32_t{});
    default: return sized(uint64_t{});
  }
}

}  // namespace tenon::provider::cpu
