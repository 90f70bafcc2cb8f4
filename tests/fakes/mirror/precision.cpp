#include "tests/fakes/mirror/precision.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "primitives/dtype/convert.h"
#include "primitives/reference/call.h"
#include "primitives/table/table.h"

namespace tenon::mirror {
namespace {

double allowed_distance(const Off& off, DType dtype) {
  const bool wide = dtype == DType::f64;
  const double epsilon = wide ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double least = wide ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  return std::max(off.epsilons * epsilon, off.tiny * least);
}

// The bits (without the sign) of the last number whose distance from `magnitude` is at most `distance`.
uint64_t last_within(DType dtype, uint64_t magnitude, double distance) {
  const double start = decode_float(dtype, magnitude);
  uint64_t last = encode_float(dtype, start + distance);
  while (last > magnitude && !(decode_float(dtype, last) - start <= distance)) --last;
  while (decode_float(dtype, last + 1) - start <= distance) ++last;
  return last;
}

uint64_t moved_float(const Off& off, DType dtype, uint64_t bits) {
  const uint64_t sign = uint64_t{1} << (dtype_info(dtype).bits - 1);
  const uint64_t magnitude = bits & (sign - 1);
  if (!std::isfinite(decode_float(dtype, bits))) return bits;
  const uint64_t by_steps = magnitude + static_cast<uint64_t>(off.ulps);
  uint64_t last = std::max(by_steps, last_within(dtype, magnitude, allowed_distance(off, dtype)));
  if (off.most > 0) last = std::min(last, encode_float(dtype, off.most));
  const uint64_t moved = off.beyond ? last + 1 : last;
  return std::isfinite(decode_float(dtype, moved)) ? (bits & sign) | moved : bits;
}

void move_element(const Off& off, DType dtype, void* base, int64_t place) {
  if (dtype == DType::boolean) {
    const auto value = reference::load<uint64_t>(dtype, base, place);
    return reference::store<uint64_t>(dtype, base, place, off.beyond ? 1 - value : value);
  }
  if (!is_floating(dtype)) {
    const auto value = reference::load<uint64_t>(dtype, base, place);
    return reference::store<uint64_t>(dtype, base, place, off.beyond ? value + 1 : value);
  }
  const auto bytes = static_cast<size_t>(dtype_info(dtype).bits / 8);
  char* at = static_cast<char*>(base) + static_cast<size_t>(place) * bytes;
  uint64_t bits = 0;
  std::memcpy(&bits, at, bytes);
  bits = moved_float(off, dtype, bits);
  std::memcpy(at, &bits, bytes);
}

}  // namespace

Off Off::parse(const std::string& text) {
  Off off;
  char word[8] = {};
  off.given =
      std::sscanf(text.c_str(), "%7[a-z],%lf,%lf,%lf,%lf", word, &off.ulps, &off.epsilons, &off.tiny, &off.most) >= 4;
  off.beyond = std::strcmp(word, "beyond") == 0;
  return off;
}

void move_outputs(const Off& off, const ep_primitive_desc& desc, void* const* operands) {
  if (!off.given) return;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (!table::is_output(desc.kind, operand.role)) continue;
    const reference::Operand view = {&operand, nullptr, nullptr};
    reference::for_each_index({operand.dims, static_cast<size_t>(operand.rank)}, [&](const int64_t* index) {
      move_element(off, static_cast<DType>(operand.dtype), operands[i], view.at(index));
    });
  }
}

}  // namespace tenon::mirror
