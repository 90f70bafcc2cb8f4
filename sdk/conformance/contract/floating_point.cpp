// The caller's floating-point state: a provider computes with the default state and restores the caller's.
#include <cfenv>
#include <cstring>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/contract/sample.h"

namespace tenon::conformance {
namespace {

constexpr int traps = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;
#if defined(__x86_64__)
constexpr uint64_t denormals_are_zero = 0x40, flush_to_zero = 0x8000, happened = 0x3f;
uint64_t control() { return __builtin_ia32_stmxcsr(); }
void add_to_control(uint64_t bits) { __builtin_ia32_ldmxcsr(static_cast<uint32_t>(control() | bits)); }
#elif defined(__aarch64__)
constexpr uint64_t denormals_are_zero = 1 << 24, flush_to_zero = 1 << 24,
                   happened = 0;  // on this processor one bit does both
uint64_t control() {
  uint64_t bits = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void add_to_control(uint64_t bits) { __asm__ volatile("msr fpcr, %0" : : "r"(control() | bits) : "memory"); }
#else
constexpr uint64_t denormals_are_zero = 0, flush_to_zero = 0, happened = 0;
uint64_t control() { return static_cast<uint64_t>(fegetround()); }
void add_to_control(uint64_t) {}
#endif

struct Mode {
  const char* what;
  int rounding;
  uint64_t bits;
  bool traps;
};
constexpr Mode modes[] = {
    {"flush-to-zero", FE_TONEAREST, flush_to_zero, false},
    {"denormals-are-zero", FE_TONEAREST, denormals_are_zero, false},
    {"flush-to-zero and denormals-are-zero", FE_TONEAREST, flush_to_zero | denormals_are_zero, false},
    {"rounding upward", FE_UPWARD, 0, false},
    {"rounding downward", FE_DOWNWARD, 0, false},
    {"rounding toward zero", FE_TOWARDZERO, 0, false},
    {"traps", FE_TONEAREST, 0, true},
};

// Sets this thread's floating-point state to a mode, during its lifetime.
class InMode {
 public:
  explicit InMode(const Mode& mode) {
    fegetenv(&before_);
    fesetround(mode.rounding);
    feclearexcept(FE_ALL_EXCEPT);  // a past exception would trap immediately
    if (mode.traps) feenableexcept(traps);
    if (mode.bits != 0) add_to_control(mode.bits);
    set_ = control() & ~happened;
  }
  ~InMode() { fesetenv(&before_); }
  InMode(const InMode&) = delete;
  InMode& operator=(const InMode&) = delete;
  bool is_unchanged() const { return (control() & ~happened) == set_; }

 private:
  fenv_t before_{};
  uint64_t set_ = 0;
};

// Sets every fifth element of each f32 operand except the first to the denormal 2^-127 or its negative. Outputs are
// overwritten later.
void put_denormals(const ep_primitive_desc& desc, cases::Image* image) {
  constexpr uint32_t denormal = 0x0040'0000, sign = 0x8000'0000;
  for (uint32_t i = 1; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (operand.dtype != EP_DTYPE_f32 || (operand.flags & EP_OPERAND_FLAG_SCALAR) != 0) continue;
    int64_t last = 0;
    for (int32_t axis = 0; axis < operand.rank; ++axis) last += (operand.dims[axis] - 1) * operand.strides[axis];
    for (int64_t at = 0; at <= last; at += 5) {
      const uint32_t bits = at % 2 == 0 ? denormal : denormal | sign;
      std::memcpy(static_cast<char*>(image->address(i)) + 4 * at, &bits, sizeof bits);
    }
  }
}

// Runs everything from creation to the last wait in `mode`. NULL: the default mode.
Status run_in(const Mode* mode, Subject& subject, const Stream& stream, Work* work) {
  constexpr Mode plain = {"the default state", FE_TONEAREST, 0, false};
  const InMode in_mode(mode == nullptr ? plain : *mode);
  TENON_RETURN_IF_ERROR(work->create());
  TENON_RETURN_IF_ERROR(work->submit(stream));
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  if (in_mode.is_unchanged()) return {};
  return broken("C02", "a thread had set {}, and a launch left it in another floating-point state",
                mode == nullptr ? plain.what : mode->what);
}

Status run_in_every_mode(Subject& subject, const Stream& stream, cases::Case sample) {
  sample.desc.flags |= EP_PRIMITIVE_FLAG_DETERMINISTIC;
  TENON_ASSIGN_OR_RETURN(const ep_primitive_desc desc, accepted_desc(subject, sample));
  Prepared plain(subject, sample, desc, 40);
  put_denormals(desc, &plain.start);
  plain.work.put(plain.start);
  const Drain drain_plain(subject, stream);
  TENON_RETURN_IF_ERROR(run_in(nullptr, subject, stream, &plain.work));
  for (const Mode& mode : modes) {
    Prepared one(subject, sample, desc, 40);
    one.work.put(plain.start);
    const Drain drain(subject, stream);
    TENON_RETURN_IF_ERROR(run_in(&mode, subject, stream, &one.work));
    if (one.work.image().bytes == plain.work.image().bytes) continue;
    return broken("C02", "the result has other bits when the calling thread has set {}", mode.what);
  }
  return {};
}

}  // namespace

// Launches one case of each kind, with some denormal inputs, in each mode that a caller may have set. The result must
// have the same bits as in the default state, and the thread's state must not change.
Status launch_floating_point(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  return for_each_sound_sample(subject,
                               [&](const cases::Case& sample) { return run_in_every_mode(subject, stream, sample); });
}

}  // namespace tenon::conformance
