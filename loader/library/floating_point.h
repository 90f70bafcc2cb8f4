// KeptFloatingPoint: saves the calling thread's floating-point state and restores it at the end of its lifetime.
//
// A library's initialisation code may change the state: gcc's -ffast-math links a constructor that sets flush-to-zero.
#pragma once

#include <cfenv>

namespace tenon::loader {

class KeptFloatingPoint {
 public:
  KeptFloatingPoint() { std::fegetenv(&before_); }
  ~KeptFloatingPoint() { std::fesetenv(&before_); }
  KeptFloatingPoint(const KeptFloatingPoint&) = delete;
  KeptFloatingPoint& operator=(const KeptFloatingPoint&) = delete;

 private:
  std::fenv_t before_;
};

}  // namespace tenon::loader
