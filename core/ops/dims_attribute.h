// DimsAttribute: Dims inside an attribute struct. Every byte is defined, so that the bytes can be compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "primitives/shape/shape.h"

namespace tenon {

// The most bytes of an attribute struct: the interpreter's keys have room for this many.
constexpr size_t kMaxAttributeBytes = 1024;

struct DimsAttribute {
  int64_t rank;
  int64_t values[EP_MAX_RANK];

  // At most EP_MAX_RANK values.
  static DimsAttribute of(std::span<const int64_t> list) {
    DimsAttribute attribute{};
    attribute.rank = static_cast<int64_t>(list.size());
    for (size_t i = 0; i < list.size(); ++i) attribute.values[i] = list[i];
    return attribute;
  }
  std::span<const int64_t> span() const { return {values, static_cast<size_t>(rank)}; }
  Dims dims() const { return Dims(span()); }
};

}  // namespace tenon
