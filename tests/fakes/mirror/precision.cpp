#include "tests/fakes/mirror/precision.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "primitives/accuracy/accuracy.h"
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

// How far a result with these bits (without the sign) may be off by the row of a lower tier for the argument `x`.
double row_distance(const Off& off, DType dtype, uint64_t magnitude, double x) {
  const double unit = decode_float(dtype, magnitude + 1) - decode_float(dtype, magnitude);
  const double epsilon = dtype == DType::f64 ? std::numeric_limits<double>::epsilon()
                                             : static_cast<double>(std::numeric_limits<float>::epsilon());
  const double units = off.units + (off.per_x == 0 ? 0 : off.per_x * std::fabs(x));
  return std::max(units * unit, off.absolute * epsilon) + off.rounding * unit;
}

uint64_t moved_float(const Off& off, DType dtype, uint64_t bits, double x) {
  const uint64_t sign = uint64_t{1} << (dtype_info(dtype).bits - 1);
  const uint64_t magnitude = bits & (sign - 1);
  if (!std::isfinite(decode_float(dtype, bits))) return bits;
  const uint64_t by_steps = magnitude + static_cast<uint64_t>(off.ulps);
  uint64_t last = std::max(by_steps, last_within(dtype, magnitude, allowed_distance(off, dtype)));
  if (off.rounding > 0) last = std::max(last, last_within(dtype, magnitude, row_distance(off, dtype, magnitude, x)));
  if (off.most > 0) last = std::min(last, encode_float(dtype, off.most));
  const uint64_t moved = off.beyond ? last + 1 : last;
  return std::isfinite(decode_float(dtype, moved)) ? (bits & sign) | moved : bits;
}

void move_element(const Off& off, DType dtype, void* base, int64_t place, double x) {
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
  bits = moved_float(off, dtype, bits, x);
  std::memcpy(at, &bits, bytes);
}

}  // namespace

Off Off::parse(const std::string& text) {
  Off off;
  char word[8] = {};
  off.given = std::sscanf(text.c_str(), "%7[a-z],%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", word, &off.ulps, &off.epsilons,
                          &off.tiny, &off.most, &off.units, &off.per_x, &off.absolute, &off.rounding) >= 4;
  off.beyond = std::strcmp(word, "beyond") == 0;
  return off;
}

void move_outputs(const Off& off, const ep_primitive_desc& desc, void* const* operands) {
  if (!off.given) return;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (!table::is_output(desc.kind, operand.role)) continue;
    const reference::Operand view = {&operand, nullptr, nullptr};
    const bool has_argument = desc.kind == EP_PRIMITIVE_unary && operands[1] != operands[0];
    const reference::Operand argument = {&desc.operands[1], has_argument ? operands[1] : nullptr, nullptr};
    reference::for_each_index({operand.dims, static_cast<size_t>(operand.rank)}, [&](const int64_t* index) {
      const double x = has_argument ? argument.get<double>(index) : 0;
      move_element(off, static_cast<DType>(operand.dtype), operands[i], view.at(index), x);
    });
  }
}

namespace {

// Sets the denormal elements of an operand at `base` to 0.
void flush(const ep_operand_desc& operand, void* base) {
  const auto dtype = static_cast<DType>(operand.dtype);
  if (!is_floating(dtype) || base == nullptr) return;
  const auto bytes = static_cast<size_t>(dtype_info(dtype).bits / 8);
  const reference::Operand view = {&operand, nullptr, nullptr};
  reference::for_each_index({operand.dims, static_cast<size_t>(operand.rank)}, [&](const int64_t* index) {
    char* at = static_cast<char*>(base) + static_cast<size_t>(view.at(index)) * bytes;
    uint64_t bits = 0;
    std::memcpy(&bits, at, bytes);
    if (!is_denormal(dtype, bits)) return;
    bits &= sign_bit(dtype);
    std::memcpy(at, &bits, bytes);
  });
}

std::vector<char> copy_of(const ep_operand_desc& operand, const void* base) {
  int64_t last = 0;
  for (int32_t axis = 0; axis < operand.rank; ++axis) last += (operand.dims[axis] - 1) * operand.strides[axis];
  const auto* bytes = static_cast<const char*>(base);
  return {bytes, bytes + dtype_bytes(static_cast<DType>(operand.dtype), last + 1)};
}

}  // namespace

Status run_flushed(const ep_primitive_desc& desc, std::vector<void*> operands,
                   const std::function<Status(void* const*)>& run) {
  if (moves_elements(desc)) return run(operands.data());
  std::vector<std::vector<char>> copies(desc.operand_count);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (operands[i] == nullptr || table::is_output(desc.kind, desc.operands[i].role)) continue;
    copies[i] = copy_of(desc.operands[i], operands[i]);
    operands[i] = copies[i].data();
    flush(desc.operands[i], operands[i]);
  }
  const Status status = run(operands.data());
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (table::is_output(desc.kind, desc.operands[i].role)) flush(desc.operands[i], operands[i]);
  }
  return status;
}

}  // namespace tenon::mirror
