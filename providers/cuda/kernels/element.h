// Converts elements between every storage type and its compute class: float (f16, bf16, f32), double, int64_t and
// uint64_t (integers), bool. The type is a number in the arguments, so all threads take the same branch.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ep_api/ep_api.h"
#include "providers/cuda/kernels/arguments.h"
#include "providers/cuda/kernels/device.h"

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#else
#include "sdk/provider/float_formats.h"
#endif

namespace tenon::provider::cuda {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};

template <class To, class From>
TENON_ON_GPU To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

// --- rounding to narrow floats: once, to nearest even ---

#if defined(__CUDACC__)
TENON_ON_GPU float half_to_float(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
TENON_ON_GPU uint16_t half_from_float(float value) { return __half_as_ushort(__float2half_rn(value)); }
#else
inline float half_to_float(uint16_t bits) { return F16::to_f32(bits); }
inline uint16_t half_from_float(float value) { return static_cast<uint16_t>(F16::from_f32(value)); }
#endif

TENON_ON_GPU float bfloat_to_float(uint16_t bits) { return bits_as<float>(static_cast<uint32_t>(bits) << 16); }
TENON_ON_GPU uint16_t bfloat_from_float(float value) {
  const uint32_t bits = bits_as<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

// Rounds to float by "round to odd": toward zero, with the last bit set if the result is inexact. A second rounding, to
// fewer bits, then gives the same result as rounding `value` directly (Boldo and Melquiond, "Emulation of FMA", 2008).
TENON_ON_GPU float to_odd(double value) {
  const float near = static_cast<float>(value);
  const double back = near;
  if (back == value || value != value) return near;
  uint32_t bits = bits_as<uint32_t>(near);
  const bool too_far = (back < 0 ? -back : back) > (value < 0 ? -value : value);
  if (too_far) bits -= 1;
  return bits_as<float>(bits | 1U);
}
TENON_ON_GPU float to_odd(uint64_t value) {
  int shift = 0;
  uint64_t rest = 0;
  while ((value >> 24) != 0) {
    rest |= value & 1U;
    value >>= 1;
    ++shift;
  }
  const float scale = bits_as<float>(static_cast<uint32_t>(127 + shift) << 23);
  return static_cast<float>(value | rest) * scale;
}

// --- casts of `copy`: one number of class From becomes an element of type To ---

// A float becomes an integer by truncation toward zero, and saturates. NaN becomes 0. The bounds are powers of two, so
// they are exact.
template <class To, class From>
TENON_ON_GPU To saturated(From value) {
  constexpr int digits = std::numeric_limits<To>::digits;
  const From above = static_cast<From>(uint64_t{1} << (digits - 1)) * 2;
  if (value != value) return To{0};
  if (value >= above) return std::numeric_limits<To>::max();
  if (std::is_signed_v<To> ? value <= -above : value <= 0) return std::numeric_limits<To>::min();
  return static_cast<To>(value);
}

template <class To, class From>
TENON_ON_GPU To cast(From value) {
  if constexpr (std::is_same_v<To, Bool>) {
    return Bool{static_cast<uint8_t>(value != From{0})};
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat>) {
    float narrow;
    if constexpr (std::is_same_v<From, double> || std::is_same_v<From, uint64_t>)
      narrow = to_odd(value);
    else if constexpr (std::is_same_v<From, int64_t>)
      narrow = value < 0 ? -to_odd(uint64_t{0} - static_cast<uint64_t>(value)) : to_odd(static_cast<uint64_t>(value));
    else
      narrow = static_cast<float>(value);
    if constexpr (std::is_same_v<To, Half>)
      return Half{half_from_float(narrow)};
    else
      return BFloat{bfloat_from_float(narrow)};
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return saturated<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class Class, class Storage>
TENON_ON_GPU Class widen(Storage value) {
  if constexpr (std::is_same_v<Storage, Half>)
    return static_cast<Class>(half_to_float(value.bits));
  else if constexpr (std::is_same_v<Storage, BFloat>)
    return static_cast<Class>(bfloat_to_float(value.bits));
  else if constexpr (std::is_same_v<Storage, Bool>)
    return static_cast<Class>(value.byte != 0);
  else
    return static_cast<Class>(value);
}

// --- calls f.template operator()<Storage>() for the storage type that `dtype` names ---

template <class Class, class Visit>
TENON_ON_GPU void with_storage(int32_t dtype, const Visit& visit) {
  if constexpr (std::is_same_v<Class, float>) {
    if (dtype == EP_DTYPE_f32)
      visit(float{});
    else if (dtype == EP_DTYPE_f16)
      visit(Half{});
    else
      visit(BFloat{});
  } else if constexpr (std::is_same_v<Class, double>) {
    visit(double{});
  } else if constexpr (std::is_same_v<Class, bool>) {
    visit(Bool{});
  } else if constexpr (std::is_same_v<Class, int64_t>) {
    if (dtype == EP_DTYPE_i64)
      visit(int64_t{});
    else if (dtype == EP_DTYPE_i32)
      visit(int32_t{});
    else if (dtype == EP_DTYPE_i16)
      visit(int16_t{});
    else
      visit(int8_t{});
  } else {
    if (dtype == EP_DTYPE_u64)
      visit(uint64_t{});
    else if (dtype == EP_DTYPE_u32)
      visit(uint32_t{});
    else if (dtype == EP_DTYPE_u16)
      visit(uint16_t{});
    else
      visit(uint8_t{});
  }
}

// Supports every `dtype`.
template <class Visit>
TENON_ON_GPU void with_any_storage(int32_t dtype, const Visit& visit) {
  switch (dtype) {
    case EP_DTYPE_f32:
    case EP_DTYPE_f16:
    case EP_DTYPE_bf16: return with_storage<float>(dtype, visit);
    case EP_DTYPE_f64: return with_storage<double>(dtype, visit);
    case EP_DTYPE_bool: return with_storage<bool>(dtype, visit);
    case EP_DTYPE_i8:
    case EP_DTYPE_i16:
    case EP_DTYPE_i32:
    case EP_DTYPE_i64: return with_storage<int64_t>(dtype, visit);
    default: return with_storage<uint64_t>(dtype, visit);
  }
}

// Loads `count` elements in one or two accesses from an address that is a multiple of pack_alignment(sizeof(Storage)).
constexpr int64_t pack_alignment(int64_t size) { return size >= 4 ? 16 : size * map_chunk; }
template <class Storage, int count>
struct alignas(count == 1 ? alignof(Storage) : pack_alignment(sizeof(Storage))) Pack {
  Storage at[count];
};

template <class Class>
TENON_ON_GPU Class load(uint64_t address, int64_t index, int32_t dtype) {
  Class value{};
  with_storage<Class>(
      dtype, [&](auto storage) { value = widen<Class>(reinterpret_cast<const decltype(storage)*>(address)[index]); });
  return value;
}

template <class Class>
TENON_ON_GPU void store(uint64_t address, int64_t index, int32_t dtype, Class value) {
  with_storage<Class>(dtype, [&](auto storage) {
    using Storage = decltype(storage);
    reinterpret_cast<Storage*>(address)[index] = cast<Storage>(value);
  });
}

// Loads the first `count` <= `chunk` elements from `index` on, `stride` apart; if `vector`, in one access.
template <int chunk, class Storage, class Class>
TENON_ON_GPU void load_chunk_as(Class* values, uint64_t address, int64_t index, int64_t stride, bool vector,
                                int64_t count) {
  const Storage* from = reinterpret_cast<const Storage*>(address) + index;
  if (chunk == 1 || (vector && count == chunk)) {
    const auto pack = *reinterpret_cast<const Pack<Storage, chunk>*>(from);
    TENON_UNROLL
    for (int i = 0; i < chunk; ++i) values[i] = widen<Class>(pack.at[i]);
  } else {
    TENON_UNROLL
    for (int i = 0; i < chunk; ++i) {
      if (i < count) values[i] = widen<Class>(from[i * stride]);
    }
  }
}

template <int chunk, class Storage, class Class>
TENON_ON_GPU void store_chunk_as(const Class* values, uint64_t address, int64_t index, int64_t stride, bool vector,
                                 int64_t count) {
  Storage* to = reinterpret_cast<Storage*>(address) + index;
  if (chunk == 1 || (vector && count == chunk)) {
    Pack<Storage, chunk> pack;
    TENON_UNROLL
    for (int i = 0; i < chunk; ++i) pack.at[i] = cast<Storage>(values[i]);
    *reinterpret_cast<Pack<Storage, chunk>*>(to) = pack;
  } else {
    TENON_UNROLL
    for (int i = 0; i < chunk; ++i) {
      if (i < count) to[i * stride] = cast<Storage>(values[i]);
    }
  }
}

}  // namespace tenon::provider::cuda
