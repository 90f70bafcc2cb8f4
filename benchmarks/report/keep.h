// Keeps the result of a measured loop alive.
#pragma once

namespace tenon::bench {

// Stops the compiler from dropping the computation of `value`.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "r,m"(&value) : "memory");
}

}  // namespace tenon::bench
