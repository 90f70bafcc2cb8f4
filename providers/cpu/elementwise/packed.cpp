// Blocks have a multiple of 8 elements, so that each block of a packed operand begins at a byte.
#include "providers/cpu/elementwise/packed.h"

#include <algorithm>

#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"
#include "sdk/provider/float_formats.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t block = 256;

int32_t bits_of(int32_t dtype) {
  switch (dtype) {
#define EP_DTYPE(name, id, bits, type_class) \
  case id:                                   \
    return bits;
#include "ep_api/dtypes.def"
#undef EP_DTYPE
    default: return 0;
  }
}

uint32_t unpack(const uint8_t* bytes, int64_t i, int32_t bits) {
  const int64_t first = i * bits;
  const auto shift = static_cast<int32_t>(first % 8);
  const uint32_t low = bytes[first / 8];
  const uint32_t high = shift + bits > 8 ? bytes[first / 8 + 1] : 0;
  return (high << 8 | low) >> shift & ((1U << bits) - 1);
}

void put_code(uint8_t* bytes, int64_t i, int32_t bits, uint32_t code) {
  const int64_t first = i * bits;
  const auto shift = static_cast<int32_t>(first % 8);
  const uint32_t mask = (1U << bits) - 1;
  bytes[first / 8] = static_cast<uint8_t>((bytes[first / 8] & ~(mask << shift)) | (code & mask) << shift);
  if (shift + bits <= 8) return;
  uint8_t& next = bytes[first / 8 + 1];
  next = static_cast<uint8_t>((next & ~(mask >> (8 - shift))) | (code & mask) >> (8 - shift));
}

float to_float(int32_t dtype, uint32_t code) {
  if (dtype == EP_DTYPE_f4e2m1) return F4E2M1::to_f32(code);
  return dtype == EP_DTYPE_f6e2m3 ? F6E2M3::to_f32(code) : F6E3M2::to_f32(code);
}

uint32_t from_float(int32_t dtype, float value) {
  if (dtype == EP_DTYPE_f4e2m1) return F4E2M1::from_f32(value);
  return dtype == EP_DTYPE_f6e2m3 ? F6E2M3::from_f32(value) : F6E3M2::from_f32(value);
}

int64_t to_integer(int32_t dtype, uint32_t code, int32_t bits) {
  const bool negative = dtype_class(dtype) == DTypeClass::INT && code >> (bits - 1) != 0;
  return static_cast<int64_t>(code) - (negative ? int64_t{1} << bits : 0);
}

// Truncates toward zero and saturates. NaN becomes 0.
int64_t truncated(int32_t dtype, double value, int32_t bits) {
  const bool is_signed = dtype_class(dtype) == DTypeClass::INT;
  const double least = is_signed ? -static_cast<double>(1 << (bits - 1)) : 0;
  const double most = static_cast<double>((1 << (is_signed ? bits - 1 : bits)) - 1);
  if (!(value == value)) return 0;
  return static_cast<int64_t>(std::clamp(value, least, most));
}

class PackedCopyPrimitive final : public ep_primitive {
 public:
  explicit PackedCopyPrimitive(const ep_primitive_desc& desc)
      : desc_(desc), to_(desc.operands[0].dtype), from_(desc.operands[desc.operand_count - 1].dtype) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    const Axes dst = axes_of(shape_of(desc_.operands[0], launch.shapes, 0), ~0U, true);
    if (desc_.kind == EP_PRIMITIVE_fill) return fill(launch, dst.count(), error);
    const Axes src = axes_of(shape_of(desc_.operands[1], launch.shapes, 1), ~0U, true);
    const int64_t count = dst.count();
    const int64_t blocks = (count + block - 1) / block;
    char* const to = address_of(launch.operands[0]);
    const char* const from = address_of(launch.operands[1]);
    parallel(device->threads, count * 4, [&](int32_t part, int32_t parts) {
      for (int64_t i = blocks * part / parts; i < blocks * (part + 1) / parts; ++i) {
        const int64_t first = i * block;
        const int64_t n = std::min(block, count - first);
        alignas(64) double values[block];  // large enough for integers of the wide type too
        write(to, dst, first, n, read(from, src, first, n, values), values);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  ep_status fill(const ep_launch& launch, int64_t count, ep_error** error) const {
    if (launch.scalar_count < 1) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "fill has no launch scalar 0, the value.");
    }
    const int32_t bits = bits_of(to_);
    const ep_scalar& scalar = launch.scalars[0];
    const auto real = static_cast<float>(scalar.value.f64);
    const uint32_t code = is_floating(to_) ? from_float(to_, real) : static_cast<uint32_t>(scalar.value.u64);
    auto* const bytes = reinterpret_cast<uint8_t*>(address_of(launch.operands[0]));
    for (int64_t i = 0; i < count; ++i) put_code(bytes, i, bits, code);
    return EP_STATUS_OK;
  }

  // Reads elements into their wide type, which is returned.
  int32_t read(const char* from, const Axes& src, int64_t first, int64_t n, void* values) const {
    const int32_t bits = bits_of(from_);
    if (bits >= 8) {
      const ConvertFunction read = widen(from_);
      const int32_t wide = wide_dtype(from_);
      for (int64_t i = 0; i < n; ++i) {
        read(static_cast<char*>(values) + i * dtype_size(wide), 1, from + src.offset(first + i) * dtype_size(from_), 1,
             1);
      }
      return wide;
    }
    const auto* const bytes = reinterpret_cast<const uint8_t*>(from);
    const bool real = is_floating(from_);
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t code = unpack(bytes, first + i, bits);
      if (real) {
        static_cast<float*>(values)[i] = to_float(from_, code);
      } else {
        static_cast<int64_t*>(values)[i] = to_integer(from_, code, bits);
      }
    }
    return real ? EP_DTYPE_f32 : EP_DTYPE_i64;
  }

  void write(char* to, const Axes& dst, int64_t first, int64_t n, int32_t wide, const void* values) const {
    const int32_t bits = bits_of(to_);
    if (bits >= 8) {
      const ConvertFunction write = narrow(wide, to_);
      for (int64_t i = 0; i < n; ++i) {
        write(to + dst.offset(first + i) * dtype_size(to_), 1, static_cast<const char*>(values) + i * dtype_size(wide),
              1, 1);
      }
      return;
    }
    auto* const bytes = reinterpret_cast<uint8_t*>(to);
    for (int64_t i = 0; i < n; ++i) put_code(bytes, first + i, bits, code_of(wide, values, i, bits));
  }

  uint32_t code_of(int32_t wide, const void* values, int64_t i, int32_t bits) const {
    const bool real = wide == EP_DTYPE_f32 || wide == EP_DTYPE_f64;
    if (!real) {
      const int64_t value = static_cast<const int64_t*>(values)[i];  // u64 wraps as i64 does
      if (!is_floating(to_)) return static_cast<uint32_t>(value);
      const bool natural = wide == EP_DTYPE_u64;
      return from_float(to_, natural ? static_cast<float>(static_cast<uint64_t>(value)) : static_cast<float>(value));
    }
    const double value = wide == EP_DTYPE_f64 ? static_cast<const double*>(values)[i]
                                              : static_cast<double>(static_cast<const float*>(values)[i]);
    if (!is_floating(to_)) return static_cast<uint32_t>(truncated(to_, value, bits));
    float odd = static_cast<float>(value);
    if (wide == EP_DTYPE_f64) narrow(EP_DTYPE_f64, EP_DTYPE_f32)(&odd, 1, &value, 1, 1);
    return from_float(to_, odd);
  }

  ep_primitive_desc desc_;
  int32_t to_, from_;
};

}  // namespace

Refusal PackedCopy::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const uint32_t operands = desc.kind == EP_PRIMITIVE_fill ? 1 : 2;
  if (desc.operand_count != operands) return Refusal::because("%u operands", desc.operand_count);
  bool packed = false;
  for (uint32_t i = 0; i < operands; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (bits_of(operand.dtype) >= 8) {
      if (wide_dtype(operand.dtype) == 0) return Refusal::because("elements of %s", dtype_name(operand.dtype));
      continue;
    }
    packed = true;
    if (is_dynamic(desc)) return Refusal::because("open dims of packed elements");
    if (!axes_of(shape_of(operand, nullptr, i), ~0U, true).contiguous())
      return Refusal::because("packed elements with gaps");
  }
  if (!packed) return Refusal::because("neither operand is packed");
  info.flags = 0;
  return {};
}

Refusal PackedCopy::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<PackedCopyPrimitive>(device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
