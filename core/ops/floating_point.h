// DefaultFloatingPoint: for the few numbers of a call that the core itself computes. During its lifetime they are
// rounded to nearest, denormals are kept and nothing traps, whatever the calling thread has set; providers do the same
// (rule C02). It takes some 200 ns.
#pragma once

#include <algorithm>
#include <cfenv>
#include <initializer_list>

namespace tenon {

class DefaultFloatingPoint {
 public:
  DefaultFloatingPoint() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatingPoint() { std::fesetenv(&before_); }
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

 private:
  std::fenv_t before_{};
};

// compute(numbers) in that state. A compiler may move arithmetic across the calls that set a state; volatile numbers
// stay between them.
template <class Compute>
double in_default_state(std::initializer_list<double> numbers, const Compute& compute) {
  volatile double kept[4] = {};
  std::copy(numbers.begin(), numbers.end(), kept);
  const DefaultFloatingPoint floating_point;
  const volatile double result = compute(static_cast<const volatile double*>(kept));
  return result;
}

}  // namespace tenon
