// The caller's floating-point state (rule C02): every family of primitives gives the bits of the default state,
// whatever the calling thread has set, on threads and with workers that started before or after that; and the thread's
// state does not change.
#include <gtest/gtest.h>

#include <cfenv>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "sdk/provider/floating_point.h"
#include "tests/cases/case.h"
#include "tests/cases/image.h"
#include "tests/unit/providers/wide_work.h"

#ifdef __x86_64__

namespace tenon::provider {
namespace {

constexpr uint32_t denormals_are_zero = 0x40, flush_to_zero = 0x8000, happened = 0x3f;

struct Mode {
  const char* what;
  int rounding;
  uint32_t bits;
  int traps;
};
constexpr Mode modes[] = {
    {"flush to zero", FE_TONEAREST, flush_to_zero, 0},
    {"denormals are zero", FE_TONEAREST, denormals_are_zero, 0},
    {"both", FE_TONEAREST, flush_to_zero | denormals_are_zero, 0},
    {"upward", FE_UPWARD, 0, 0},
    {"downward", FE_DOWNWARD, 0, 0},
    {"toward zero", FE_TOWARDZERO, 0, 0},
    {"traps", FE_TONEAREST, 0, FE_ALL_EXCEPT},
};

struct Control {
  uint32_t sse;
  uint16_t x87;
  bool operator==(const Control&) const = default;
};

Control control() {
  uint16_t x87 = 0;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return {__builtin_ia32_stmxcsr() & ~happened, x87};
}

// Calls run() in `mode` on this thread, and checks that the mode is still set afterwards.
void in_mode(const Mode& mode, const std::function<void()>& run) {
  fenv_t before;
  fegetenv(&before);
  fesetround(mode.rounding);
  feenableexcept(mode.traps);
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | mode.bits);
  const Control set = control();
  run();
  const bool kept = control() == set;
  fesetenv(&before);
  EXPECT_TRUE(kept) << mode.what;
}

// A launch whose operands are in an image, and the bytes after it.
struct Launch {
  cases::Case test;
  cases::Image image;

  // Allocates and compares no floats, because it runs in a changed floating-point mode.
  ep_status run(OpenProvider& provider, std::vector<uint8_t>* out) const {
    cases::Image mine = image;
    std::vector<void*> addresses;
    for (uint32_t i = 0; i < test.desc.operand_count; ++i) {
      const bool is_scalar = (test.desc.operands[i].flags & EP_OPERAND_FLAG_SCALAR) != 0;
      addresses.push_back(is_scalar ? nullptr : mine.address(i));
    }
    const ep_status status = run_once(provider, test.desc, addresses, test.scalars).status;
    *out = std::move(mine.bytes);
    return status;
  }
};

// In the f32 operands except the first, every third element becomes a denormal number.
void put_denormals(const ep_primitive_desc& desc, cases::Image* image) {
  for (uint32_t i = 1; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (operand.dtype != EP_DTYPE_f32 || (operand.flags & EP_OPERAND_FLAG_SCALAR) != 0) continue;
    for (int64_t at = 0; at < extent(operand); at += 3) {
      const uint32_t bits = 0x0012'3456U | static_cast<uint32_t>(at % 2) << 31U;
      std::memcpy(static_cast<char*>(image->address(i)) + 4 * at, &bits, sizeof bits);
    }
  }
}

// Up to four cases of each kind and scalar function that the provider supports, spread over dtypes and layouts.
std::vector<Launch> families(OpenProvider& provider) {
  constexpr size_t most_of_one = 4;
  std::map<std::pair<int32_t, int32_t>, std::vector<cases::Case>> groups;
  for (const cases::Case& test : cases::all_cases()) {
    const bool has_op = test.desc.kind == EP_PRIMITIVE_unary || test.desc.kind == EP_PRIMITIVE_binary ||
                        test.desc.kind == EP_PRIMITIVE_reduce;
    const int32_t op = !has_op                                 ? test.desc.operands[0].dtype
                       : test.desc.kind == EP_PRIMITIVE_unary  ? test.desc.attributes.unary.op
                       : test.desc.kind == EP_PRIMITIVE_binary ? test.desc.attributes.binary.op
                                                               : test.desc.attributes.reduce.op;
    if (test.fault == 0) groups[{test.desc.kind, op}].push_back(test);
  }
  std::vector<Launch> launches;
  for (const auto& [key, group] : groups) {
    size_t taken = 0;
    for (size_t i = 0; i < group.size() && taken < most_of_one; i += group.size() / most_of_one + 1) {
      Launch launch{group[i], cases::make_image(group[i].desc, false)};
      cases::fill_inputs(launch.test, launch.test.desc, &launch.image);
      put_denormals(launch.test.desc, &launch.image);
      std::vector<uint8_t> bytes;
      if (launch.run(provider, &bytes) != EP_STATUS_OK) continue;
      launches.push_back(std::move(launch));
      ++taken;
    }
  }
  return launches;
}

// A thread that started before any mode was set. It runs the functions that it is given.
class OldThread {
 public:
  OldThread() : thread_([this] { serve(); }) {}
  ~OldThread() {
    run(nullptr);
    thread_.join();
  }
  void run(std::function<void()> work) {
    std::unique_lock lock(mutex_);
    work_ = std::move(work);
    given_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !given_; });
  }

 private:
  void serve() {
    for (bool more = true; more;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return given_; });
      more = work_ != nullptr;
      if (more) work_();
      given_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool given_ = false;
  std::thread thread_;
};

TEST(FloatingPoint, OfTheCallerChangesNoBitOfAnyFamily) {
  OpenProvider provider("cpu", {}, 2);
  OldThread old_thread;
  const std::vector<Launch> launches = families(provider);
  ASSERT_GT(launches.size(), 150U);
  for (const Launch& launch : launches) {
    std::vector<uint8_t> want, got;
    ASSERT_EQ(launch.run(provider, &want), EP_STATUS_OK);
    const auto run = [&] { static_cast<void>(launch.run(provider, &got)); };
    for (const Mode& mode : modes) {
      in_mode(mode, [&] { std::thread(run).join(); });  // a new thread inherits the mode
      EXPECT_TRUE(got == want) << launch.test.name << " on a new thread, " << mode.what;
      old_thread.run([&] { in_mode(mode, run); });
      EXPECT_TRUE(got == want) << launch.test.name << " on an old thread, " << mode.what;
    }
  }
}

// Each mode is set before the provider has all the workers that it will use in it, so at least one worker starts in
// that mode and the others are older.
TEST(FloatingPoint, OfTheCallerChangesNoBitOfWideWork) {
  OpenProvider one("cpu", {}, 1);
  struct Known {
    Work work;
    std::vector<std::vector<float>> operands;
    std::vector<float> want;
  };
  std::vector<Known> known;
  for (const Work& work : wide_work()) {
    std::vector<std::vector<float>> operands = operands_of(work);
    for (size_t i = 1; i < operands.size(); ++i) {
      for (size_t at = 0; at < operands[i].size(); at += 3) operands[i][at] = at % 2 == 0 ? 0x1p-127F : -0x1p-140F;
    }
    std::vector<float> want = result_of(one, work, operands);
    known.push_back({work, std::move(operands), std::move(want)});
  }
  int32_t threads = 2;
  for (const Mode& mode : modes) {
    OpenProvider provider("cpu", {}, threads++);
    for (const Known& each : known) {
      std::vector<float> got;
      in_mode(mode, [&] { got = result_of(provider, each.work, each.operands); });
      EXPECT_TRUE(equal_bits(got, each.want)) << each.work.name << ", " << mode.what;
    }
  }
}

// The caller enables traps after an inexact result of the x87 unit, which traps at its next instruction that waits.
TEST(FloatingPoint, MeetsAnExceptionThatIsPending) {
  volatile long double third = 1;
  third = third / 3;
  fenv_t before;
  fegetenv(&before);
  feenableexcept(FE_ALL_EXCEPT);
  { const DefaultFloatingPoint floating_point; }
  __asm__ volatile("fnclex");
  fesetenv(&before);
}

TEST(FloatingPoint, IsTheDefaultDuringTheLifetimeAndTheCallersAfterwards) {
  const Control plain = control();
  for (const Mode& mode : modes) {
    in_mode(mode, [&] {
      const DefaultFloatingPoint floating_point;
      const bool is_default = control() == plain;
      if (!is_default) std::abort();
    });
  }
  EXPECT_TRUE(control() == plain);
}

}  // namespace
}  // namespace tenon::provider

#endif
