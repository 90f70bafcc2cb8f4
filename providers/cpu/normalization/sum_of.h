// sum_of(n, f): the sum of f(i) in double for every i < n, in eight independent partial sums.
#pragma once

#include <cstdint>

namespace tenon::provider::cpu {

template <class F>
inline double sum_of(int64_t n, const F& f) {
  double parts[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int64_t k = 0; k < 8; ++k) parts[k] += f(i + k);
  }
  for (; i < n; ++i) parts[0] += f(i);
  return ((parts[0] + parts[4]) + (parts[1] + parts[5])) + ((parts[2] + parts[6]) + (parts[3] + parts[7]));
}

}  // namespace tenon::provider::cpu
