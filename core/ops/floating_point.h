// DefaultFloatingPoint: for the few numbers of a call that the core itself computes. During its lifetime results are
// rounded to nearest, denormals are kept and nothing traps, whatever the calling thread has set; providers do the same
// (rule C02).
#pragma once

#include <algorithm>
#include <cfenv>
#include <initializer_list>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace tenon {

class DefaultFloatingPoint {
 public:
#if defined(__SSE2__)
  // Only SSE is set: f32 and f64 never use the x87 unit, whose state takes 200 ns to change.
  DefaultFloatingPoint() : before_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~DefaultFloatingPoint() { _mm_setcsr(before_); }
#else
  DefaultFloatingPoint() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatingPoint() { std::fesetenv(&before_); }
#endif
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

 private:
#if defined(__SSE2__)
  unsigned before_;
#else
  std::fenv_t before_{};
#endif
};

// compute(numbers) in that state. A compiler may move arithmetic across the calls that set the state; volatile numbers
// keep it between them.
template <class Compute>
double in_default_state(std::initializer_list<double> numbers, const Compute& compute) {
  volatile double kept[4] = {};
  std::copy(numbers.begin(), numbers.end(), kept);
  const DefaultFloatingPoint floating_point;
  const volatile double result = compute(static_cast<const volatile double*>(kept));
  return result;
}

}  // namespace tenon
