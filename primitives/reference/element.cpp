#include "primitives/reference/element.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "primitives/dtype/convert.h"

namespace tenon::reference {
namespace {

uint64_t read_bits(int32_t bits, const void* base, int64_t index) {
  const auto* bytes = static_cast<const unsigned char*>(base);
  if (bits < 8) {
    const int64_t first = index * bits;
    const int shift = static_cast<int>(first % 8);
    const unsigned low = bytes[first / 8];
    const unsigned high = shift + bits > 8 ? bytes[first / 8 + 1] : 0;
    return (high << 8 | low) >> shift & ((1U << bits) - 1);
  }
  const auto read = [&](auto value) -> uint64_t {
    std::memcpy(&value, bytes + index * static_cast<int64_t>(sizeof value), sizeof value);
    return value;
  };
  switch (bits) {
    case 8: return read(uint8_t{});
    case 16: return read(uint16_t{});
    case 32: return read(uint32_t{});
    default: return read(uint64_t{});
  }
}

void write_bits(int32_t bits, void* base, int64_t index, uint64_t value) {
  auto* bytes = static_cast<unsigned char*>(base);
  if (bits < 8) {
    for (int64_t i = 0; i < bits; ++i) {
      const int64_t place = index * bits + i;
      const unsigned bit = 1U << (place % 8);
      const unsigned others = bytes[place / 8] & ~bit;
      bytes[place / 8] = static_cast<unsigned char>((value >> i & 1) != 0 ? others | bit : others);
    }
    return;
  }
  std::memcpy(bytes + index * (bits / 8), &value, static_cast<size_t>(bits / 8));
}

int64_t sign_extend(uint64_t value, int32_t bits) {
  const int shift = 64 - bits;
  return static_cast<int64_t>(value << shift) >> shift;
}

// `value` truncated toward zero and clamped to the range of an integer of `bits` bits.
uint64_t saturate(double value, int32_t bits, bool is_signed) {
  if (std::isnan(value)) return 0;
  const double limit = std::ldexp(1.0, is_signed ? bits - 1 : bits);
  const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const uint64_t greatest = is_signed ? ones >> 1 : ones;
  const uint64_t least = is_signed ? uint64_t{1} << (bits - 1) : 0;
  const double whole = std::trunc(value);
  if (whole >= limit) return greatest;
  if (whole < (is_signed ? -limit : 0.0)) return least;
  return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(whole)) : static_cast<uint64_t>(whole);
}

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<From, double> && std::is_same_v<To, int64_t>) {
    return static_cast<int64_t>(saturate(value, 64, true));
  } else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, uint64_t>) {
    return saturate(value, 64, false);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

template <class T>
T load(DType dtype, const void* base, int64_t index) {
  const DTypeInfo& info = dtype_info(dtype);
  const uint64_t bits = read_bits(info.bits, base, index);
  if (info.type_class == DTypeClass::FLOAT) return convert<T>(decode_float(dtype, bits));
  if (info.type_class == DTypeClass::INT) return convert<T>(sign_extend(bits, info.bits));
  return convert<T>(bits);
}

template <class T>
void store(DType dtype, void* base, int64_t index, T value) {
  const DTypeInfo& info = dtype_info(dtype);
  uint64_t bits = 0;
  if (info.type_class == DTypeClass::FLOAT) {
    bits = encode_float(dtype, value);
  } else if (info.type_class == DTypeClass::BOOL) {
    bits = value != 0;
  } else if constexpr (std::is_same_v<T, double>) {
    bits = saturate(value, info.bits, info.type_class == DTypeClass::INT);
  } else {
    bits = static_cast<uint64_t>(value);
  }
  write_bits(info.bits, base, index, bits);
}

template <class T>
T scalar_value(const ep_scalar& scalar) {
  switch (dtype_info(static_cast<DType>(scalar.dtype)).type_class) {
    case DTypeClass::FLOAT: return convert<T>(scalar.value.f64);
    case DTypeClass::INT: return convert<T>(scalar.value.i64);
    default: return convert<T>(scalar.value.u64);
  }
}

template <class T>
T scalar_element(const ep_scalar& scalar) {
  const auto dtype = static_cast<DType>(scalar.dtype);
  uint64_t bits = 0;
  with_compute_type(dtype, [&](auto type) { store(dtype, &bits, 0, scalar_value<decltype(type)>(scalar)); });
  return load<T>(dtype, &bits, 0);
}

#define INSTANTIATE(T)                              \
  template T load<T>(DType, const void*, int64_t);  \
  template void store<T>(DType, void*, int64_t, T); \
  template T scalar_value<T>(const ep_scalar&);     \
  template T scalar_element<T>(const ep_scalar&);
INSTANTIATE(double)
INSTANTIATE(int64_t)
INSTANTIATE(uint64_t)
#undef INSTANTIATE

}  // namespace tenon::reference
