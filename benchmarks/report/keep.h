// What a measured loop does with its result.
#pragma once

namespace tenon::bench {

// Keeps the compiler from dropping the computation of `value`.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "r,m"(&value) : "memory");
}

}  // namespace tenon::bench
