// KeptFloatingPoint: the calling thread's floating-point state, as it was when this was made, after its lifetime.
//
// Code that a library runs when it is mapped may change it: gcc's -ffast-math links a constructor that sets
// flush-to-zero.
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
