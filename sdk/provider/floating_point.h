// DefaultFloatingPoint: the processor's default floating-point state during its lifetime, on the thread that made it
// (rule C02).
//
// Default means: rounded to nearest, denormals kept, no traps. The caller may have set flush-to-zero or
// denormals-are-zero, another rounding mode, or traps (feenableexcept); the destructor gives the caller's state back.
// Where the state is the default already, a DefaultFloatingPoint reads one register and writes none. `entry<f>` holds
// one during each call. Threads of a provider's own inherit the state of the thread that starts them: start them within
// an entry, or hold one there.
//
// The flags that say which exceptions have happened are no part of this. On a processor that is neither x86-64 nor
// AArch64 a DefaultFloatingPoint does nothing.
#pragma once

#include <cstdint>

namespace tenon::provider {

class DefaultFloatingPoint {
 public:
#if defined(__x86_64__)
  DefaultFloatingPoint() : before_(__builtin_ia32_stmxcsr()) {
    if ((before_ & ~flags) != default_state) [[unlikely]]
      set();
  }
  ~DefaultFloatingPoint() {
    if (changed_) [[unlikely]]
      give_back();
  }
#elif defined(__aarch64__)
  DefaultFloatingPoint() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    changed_ = before_ != 0;
    if (changed_) [[unlikely]]
      __asm__ volatile("msr fpcr, %0" : : "r"(uint64_t{0}) : "memory");
  }
  ~DefaultFloatingPoint() {
    if (changed_) [[unlikely]]
      __asm__ volatile("msr fpcr, %0" : : "r"(before_) : "memory");
  }
#else
  DefaultFloatingPoint() {}
  ~DefaultFloatingPoint() {}
#endif
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint32_t flags = 0x3f;            // of MXCSR: exceptions that have happened
  static constexpr uint32_t default_state = 0x1f80;  // of MXCSR: all exceptions masked
  static constexpr uint16_t default_x87 = 0x37f;

  // The C library sets rounding and traps in both units, so the older one (long double) is looked at only here. fldcw
  // traps for an exception that has happened there and that the caller does not mask, so fnclex forgets it.
  [[gnu::noinline]] void set() {
    changed_ = true;
    __builtin_ia32_ldmxcsr(default_state);
    __asm__ volatile("fnstcw %0" : "=m"(x87_before_) : : "memory");
    if (x87_before_ != default_x87) __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(default_x87) : "memory");
  }
  [[gnu::noinline]] void give_back() const {
    if (x87_before_ != default_x87) __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(x87_before_) : "memory");
    __builtin_ia32_ldmxcsr(before_);
  }

  uint32_t before_;
  uint16_t x87_before_ = default_x87;
  bool changed_ = false;
#elif defined(__aarch64__)
  uint64_t before_ = 0;
  bool changed_ = false;
#endif
};

}  // namespace tenon::provider
