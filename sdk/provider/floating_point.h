// DefaultFloatingPoint: the processor's default floating-point state during its lifetime, on the thread that made it
// (rule C02).
//
// The default state rounds to nearest, keeps denormals and traps nothing. The caller may have set flush-to-zero or
// denormals-are-zero, another rounding mode, or traps (feenableexcept); the destructor restores the caller's state. If
// the state is already the default, a DefaultFloatingPoint reads one register and writes none. `entry<f>` holds one
// during each call. A provider's own threads inherit the state of the thread that starts them: start them within an
// entry, or make a DefaultFloatingPoint in the thread.
//
// The flags of past exceptions do not change. On processors other than x86-64 and AArch64 a DefaultFloatingPoint does
// nothing.
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
  static constexpr uint32_t flags = 0x3f;            // MXCSR: flags of past exceptions
  static constexpr uint32_t default_state = 0x1f80;  // MXCSR: all exceptions masked
  static constexpr uint16_t default_x87 = 0x37f;

  // The C library sets rounding and traps in both the SSE and the x87 unit, so the x87 unit (long double) is checked
  // only here. fldcw would trap on a past x87 exception that the caller has unmasked, so fnclex clears it first.
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
  uint16_t x87_before_;  // set if changed_
  bool changed_ = false;
#elif defined(__aarch64__)
  uint64_t before_ = 0;
  bool changed_ = false;
#endif
};

}  // namespace tenon::provider
