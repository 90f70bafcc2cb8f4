#include "primitives/accuracy/accuracy.h"

#include <algorithm>
#include <bit>

#include "primitives/text/format.h"

namespace tenon {

std::string_view tier_name(Tier tier) {
  constexpr std::string_view names[] = {"", "relaxed", "portable", "full"};
  return names[static_cast<size_t>(tier)];
}

std::optional<Tier> tier_from_name(std::string_view name) {
  for (Tier tier : {Tier::relaxed, Tier::portable, Tier::full}) {
    if (name == tier_name(tier)) return tier;
  }
  return std::nullopt;
}

bool moves_elements(const ep_primitive_desc& desc) {
  switch (desc.kind) {
    case EP_PRIMITIVE_fill:
    case EP_PRIMITIVE_gather:
    case EP_PRIMITIVE_concat:
    case EP_PRIMITIVE_split:
    case EP_PRIMITIVE_pad:
    case EP_PRIMITIVE_sort:
    case EP_PRIMITIVE_top_k:
    case EP_PRIMITIVE_unique:
    case EP_PRIMITIVE_nonzero:
    case EP_PRIMITIVE_one_hot: return true;
    case EP_PRIMITIVE_scan: return desc.attributes.scan.op == EP_SCAN_MAX || desc.attributes.scan.op == EP_SCAN_MIN;
    case EP_PRIMITIVE_scatter: return desc.attributes.scatter.op == EP_SCATTER_ASSIGN;
    case EP_PRIMITIVE_random: return desc.attributes.random.distribution == EP_RANDOM_UNIFORM;
    case EP_PRIMITIVE_copy: return desc.operands[0].dtype == desc.operands[1].dtype;
    default: return false;
  }
}

Tier tier_of(const ep_primitive_desc& desc, const Accuracy& accuracy) {
  Tier lowest = Tier::full;
  if (moves_elements(desc)) return lowest;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    lowest = std::min(lowest, accuracy.tier(static_cast<DType>(desc.operands[i].dtype)));
  }
  return lowest;
}

Tier tier_kept(const ep_primitive_desc& desc, const Accuracy& accuracy) {
  const Tier stated = tier_of(desc, accuracy);
  if (desc.precision == EP_PRECISION_DEFAULT || moves_elements(desc)) return stated;
  const auto demanded = static_cast<Tier>(desc.precision);
  return demanded == Tier::relaxed ? demanded : std::max(demanded, stated);
}

std::string why_below(const ep_primitive_desc& desc, const Accuracy& accuracy) {
  if (desc.precision < EP_PRECISION_PORTABLE || moves_elements(desc)) return {};
  const auto demanded = static_cast<Tier>(desc.precision);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const auto dtype = static_cast<DType>(desc.operands[i].dtype);
    if (accuracy.tier(dtype) < demanded) {
      return fmt::format("{} is of tier {}, and the program demands {}", dtype_name(dtype),
                         tier_name(accuracy.tier(dtype)), tier_name(demanded));
    }
    if (demanded == Tier::full && accuracy.flushes(dtype)) {
      return fmt::format("denormals of {} count as 0, and the program demands tier full, which keeps them",
                         dtype_name(dtype));
    }
  }
  return {};
}

std::string settle_demand(ep_primitive_desc* desc, const Accuracy& accuracy) {
  std::string why = why_below(*desc, accuracy);
  if (why.empty() && desc->precision >= EP_PRECISION_PORTABLE) desc->precision = EP_PRECISION_DEFAULT;
  return why;
}

uint64_t sign_bit(DType dtype) { return uint64_t{1} << (dtype_info(dtype).bits - 1); }

uint64_t least_normal(DType dtype) {
  switch (dtype) {
    case DType::f64: return uint64_t{1} << 52;
    case DType::f32: return uint64_t{1} << 23;
    case DType::f16: return uint64_t{1} << 10;
    case DType::bf16: return uint64_t{1} << 7;
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f6e2m3: return uint64_t{1} << 3;
    case DType::f4e2m1: return uint64_t{1} << 1;
    case DType::f8e8m0: return 0;
    default: return uint64_t{1} << 2;  // f8e5m2, f8e5m2fnuz, f6e3m2
  }
}

bool is_denormal(DType dtype, uint64_t bits) {
  const uint64_t magnitude = bits & ~sign_bit(dtype);
  return is_floating(dtype) && magnitude != 0 && magnitude < least_normal(dtype);
}

uint64_t floating_dtypes() {
  uint64_t floating = 0;
#define EP_DTYPE(name, id, bits, type_class) \
  if (DTypeClass::type_class == DTypeClass::FLOAT) floating |= uint64_t{1} << (id);
#include "ep_api/dtypes.def"
#undef EP_DTYPE
  return floating;
}

std::string why_no_accuracy(const Accuracy& accuracy) {
  const auto first = [](uint64_t bits) { return dtype_name(static_cast<DType>(std::countr_zero(bits))); };
  if (const uint64_t both = accuracy.portable & accuracy.relaxed; both != 0) {
    return fmt::format("states two tiers of accuracy for {}", first(both));
  }
  if (const uint64_t odd = (accuracy.portable | accuracy.relaxed | accuracy.flushed) & ~floating_dtypes(); odd != 0) {
    return fmt::format("states the accuracy of dtype {}, which is not a floating type", std::countr_zero(odd));
  }
  return {};
}

}  // namespace tenon
