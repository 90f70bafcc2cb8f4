// Detects a list that is already in order, which costs far less than a sort.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "providers/cpu/order/keys.h"

namespace tenon::provider::cpu {

// The order of all neighbours in a list. If both are true, all elements are equal.
struct Run {
  bool rises = true;  // none is less than the one before
  bool falls = true;  // none is greater than the one before
};

// Examines n elements by their keys. A NaN among floats of 4 or 8 bytes makes both members false. Stops after the first
// block that makes both false, so an unordered list costs almost nothing.
template <class Type>
Run run_of(const Type& type, const typename Type::Bits* elements, int64_t n) {
  using U = typename Type::Bits;
  const auto rank_of = [&](U bits) {
    if constexpr (Type::mode == KeyMode::FLOAT && sizeof(U) == 4) return std::bit_cast<float>(bits);
    if constexpr (Type::mode == KeyMode::FLOAT && sizeof(U) == 8) return std::bit_cast<double>(bits);
    if constexpr (Type::mode != KeyMode::FLOAT || sizeof(U) < 4) return type.key(bits);
  };
  constexpr int64_t block = 128;
  Run run;
  for (int64_t first = 0; first + 1 < n && (run.rises || run.falls); first += block) {
    unsigned not_rising = 0, not_falling = 0;
    const int64_t last = std::min(first + block, n - 1);
    for (int64_t i = first; i < last; ++i) {
      const auto one = rank_of(elements[i]), next = rank_of(elements[i + 1]);
      not_rising |= one <= next ? 0U : 1U;
      not_falling |= one >= next ? 0U : 1U;
    }
    run.rises = run.rises && not_rising == 0;
    run.falls = run.falls && not_falling == 0;
  }
  return run;
}

}  // namespace tenon::provider::cpu
