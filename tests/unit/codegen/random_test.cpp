// Random kernels: the interpreter before and after the schedule and after each of some random steps, and the compiled
// text.
#include <gtest/gtest.h>

#include <random>

#include "core/codegen/loop/interpret.h"
#include "core/codegen/schedule/schedule.h"
#include "core/codegen/tactics/tactics.h"
#include "primitives/text/format.h"
#include "tests/unit/codegen/compiled.h"
#include "tests/unit/codegen/groups.h"

namespace tenon::codegen {
namespace {

// A kernel over axes i (a size), j and k: reductions, values that read them, and stores, with indices in any order of
// the axes.
class RandomKernel {
 public:
  explicit RandomKernel(uint32_t seed) : random_(seed), kernel_(fmt::format("random_{}", seed)), scope_(kernel_.arena) {
    const SymDim n = kernel_.add_parameter("n", 0, 4096);
    constexpr int64_t extents[] = {1, 2, 3, 15, 16, 17, 33, 40};
    axes_ = {kernel_.add_axis("i", n), kernel_.add_axis("j", extents[draw(8)]),
             kernel_.add_axis("k", extents[draw(8)])};
    const uint32_t inputs = 1 + draw(3);
    for (uint32_t i = 0; i < inputs; ++i) add_input(i);
    const uint32_t stages = 1 + draw(4);
    for (uint32_t i = 0; i < stages; ++i) add_stage(i);
    const uint32_t stores = 1 + draw(2);
    for (uint32_t i = 0; i < stores; ++i) add_store(i);
  }

  const Kernel& kernel() const { return kernel_; }

 private:
  uint32_t draw(uint32_t below) { return random_() % below; }

  std::vector<Id> some_axes() {
    std::vector<Id> result;
    for (const Id axis : axes_) {
      if (draw(3) != 0) result.push_back(axis);
    }
    return result;
  }

  // A dense index over `axes` in a random order, and the number of elements that it covers.
  std::pair<SymDim, SymDim> dense(std::vector<Id> axes) {
    std::shuffle(axes.begin(), axes.end(), random_);
    SymDim index = 0;
    SymDim count = 1;
    for (const Id axis : axes) {
      index = index * kernel_.axes[axis].extent + kernel_.at(axis);
      count *= kernel_.axes[axis].extent;
    }
    return {index, count};
  }

  void add_input(uint32_t number) {
    const std::vector<Id> axes = some_axes();
    const auto [index, count] = dense(axes);
    constexpr DType dtypes[] = {DType::f32, DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32};
    const Id buffer = kernel_.add_buffer(fmt::format("x{}", number), dtypes[draw(6)], count, false);
    loads_.push_back({buffer, index, axes});
  }

  static bool covers(const std::vector<Id>& outer, const std::vector<Id>& inner) {
    return std::all_of(inner.begin(), inner.end(),
                       [&](Id axis) { return std::find(outer.begin(), outer.end(), axis) != outer.end(); });
  }

  // A number over some of `axes`.
  Id leaf(const std::vector<Id>& axes) {
    std::vector<Id> candidates;
    for (Id i = 0; i < kernel_.stages.size(); ++i) {
      if (kernel_.stages[i].kind != StageKind::store && covers(axes, kernel_.stages[i].axes)) candidates.push_back(i);
    }
    if (!candidates.empty() && draw(2) == 0)
      return kernel_.read(candidates[draw(static_cast<uint32_t>(candidates.size()))]);
    for (const Load& load : loads_) {
      if (covers(axes, load.axes) && draw(2) == 0) {
        const Id value = kernel_.load(load.buffer, load.index);
        return kernel_.exprs[value].dtype == DType::f32 ? value : kernel_.cast(DType::f32, value);
      }
    }
    return kernel_.constant(DType::f32, 0.25 + draw(8) * 0.25);
  }

  Id expression(const std::vector<Id>& axes, int depth) {
    if (depth == 0) return leaf(axes);
    switch (draw(6)) {
      case 0: return kernel_.binary("add", expression(axes, depth - 1), expression(axes, depth - 1));
      case 1: return kernel_.binary("mul", expression(axes, depth - 1), leaf(axes));
      case 2: return kernel_.binary("maximum", expression(axes, depth - 1), leaf(axes));
      case 3: return kernel_.unary("tanh", expression(axes, depth - 1));
      case 4: return kernel_.unary("sigmoid", expression(axes, depth - 1));
      default: {
        const Id x = expression(axes, depth - 1);
        return kernel_.ternary("where", kernel_.binary("lt", x, leaf(axes)), x, leaf(axes));
      }
    }
  }

  void add_stage(uint32_t number) {
    std::vector<Id> axes = some_axes();
    std::vector<Id> reduced;
    if (draw(2) == 0) {
      for (const Id axis : axes_) {
        if (draw(2) == 0) {
          axes.erase(std::remove(axes.begin(), axes.end(), axis), axes.end());
          reduced.push_back(axis);
        }
      }
    }
    std::vector<Id> all = axes;
    all.insert(all.end(), reduced.begin(), reduced.end());
    const Id value = expression(all, static_cast<int>(draw(3)));
    constexpr const char* reductions[] = {"mean", "max", "min"};
    if (reduced.empty()) {
      kernel_.add_value(fmt::format("s{}", number), axes, value);
    } else {
      kernel_.add_reduce(fmt::format("s{}", number), reductions[draw(3)], axes, reduced, value);
    }
  }

  void add_store(uint32_t number) {
    const std::vector<Id> axes = some_axes();
    const auto [index, count] = dense(axes);
    const Id buffer =
        kernel_.add_buffer(fmt::format("y{}", number), draw(3) == 0 ? DType::bf16 : DType::f32, count, true);
    Id value = expression(axes, 2);
    if (kernel_.buffers[buffer].dtype != DType::f32) value = kernel_.cast(kernel_.buffers[buffer].dtype, value);
    kernel_.add_store(fmt::format("u{}", number), buffer, index, axes, value);
  }

  struct Load {
    Id buffer;
    SymDim index;
    std::vector<Id> axes;
  };

  std::mt19937 random_;
  Kernel kernel_;
  symbolic::ArenaScope scope_;
  std::vector<Id> axes_;
  std::vector<Load> loads_;
};

void expect_interprets(const Kernel& plain, const Kernel& kernel, const std::vector<std::vector<int64_t>>& sizes) {
  for (const std::vector<int64_t>& parameters : sizes) {
    Memory expected(plain, parameters, 11);
    Memory actual(plain, parameters, 11);
    const Status before = interpret(plain, parameters, expected.addresses());
    ASSERT_TRUE(before.ok()) << before.message() << "\n" << to_string(plain);
    const Status after = interpret(kernel, parameters, actual.addresses());
    ASSERT_TRUE(after.ok()) << after.message() << "\n" << to_string(kernel);
    expect_near(plain, expected, actual, 4, 1e-6, to_string(kernel));
  }
}

// Steps that may be refused. After each step that is not, the kernel computes the same.
int random_steps(const Kernel& plain, Kernel* kernel, std::mt19937& random) {
  int taken = 0;
  for (int i = 0; i < 12; ++i) {
    const Id stage = static_cast<Id>(random() % kernel->stages.size());
    const Id other = static_cast<Id>(random() % kernel->stages.size());
    const Id axis = static_cast<Id>(random() % kernel->axes.size());
    const uint32_t step = random() % 7;
    const Status status = step == 0   ? tile(kernel, stage, axis, 4)
                          : step == 1 ? vectorise(kernel, stage, axis, 1 + random() % 4)
                          : step == 2 ? reorder(kernel, stage, axis)
                          : step == 3 ? compute_at(kernel, stage, other)
                          : step == 4 ? inline_stage(kernel, stage)
                          : step == 5 ? hold(kernel, stage, Storage::registers)
                                      : hold(kernel, stage, Storage::row);
    if (!status.ok()) continue;
    ++taken;
    expect_interprets(plain, *kernel, {{3}});
    if (testing::Test::HasFatalFailure()) break;
  }
  return taken;
}

// --gtest_random_seed=N draws other kernels.
TEST(RandomKernels, ComputeTheSameHoweverTheyAreScheduled) {
  int steps = 0;
  int scheduled = 0;
  const auto first = static_cast<uint32_t>(testing::UnitTest::GetInstance()->random_seed()) * 1000;
  for (uint32_t seed = first; seed < first + 60; ++seed) {
    const RandomKernel made(seed);
    const Kernel& plain = made.kernel();
    const Status well_made = verify(plain);
    ASSERT_TRUE(well_made.ok()) << well_made.message() << "\n" << to_string(plain);
    EXPECT_EQ(to_string(parsed(to_string(plain))), to_string(plain));
    Kernel kernel = plain;
    const Status status = schedule_for_cpu(&kernel);
    ASSERT_TRUE(status.ok()) << status.message() << "\n" << to_string(plain);
    expect_interprets(plain, kernel, {{0}, {1}, {5}});
    Kernel in_groups = plain;
    const Status grouped = schedule_for_groups(&in_groups);
    const bool too_long =
        grouped.code() == Code::unsupported;  // reductions that need more shared memory than the device has
    ASSERT_TRUE(grouped.ok() || too_long) << grouped.message() << "\n" << to_string(plain);
    scheduled += grouped.ok() ? 1 : 0;
    if (grouped.ok()) {
      expect_interprets(plain, in_groups, {{0}, {1}, {5}});
      EXPECT_EQ(to_string(parsed(to_string(in_groups))), to_string(in_groups));
    }
    Kernel by_hand = plain;
    std::mt19937 random(seed);
    const Id one = add_unit_axis(&by_hand);
    const Status loops = make_loops(&by_hand, one);
    ASSERT_TRUE(loops.ok()) << loops.message() << "\n" << to_string(plain);
    steps += random_steps(plain, &by_hand, random);
    if (seed % 30 == 0) {
      expect_compiles(kernel, {{0}, {1}, {17}}, 64, 1e-5);
      if (emit_c(by_hand).ok()) expect_compiles(by_hand, {{17}}, 64, 1e-5);
      if (grouped.ok()) expect_dialects(in_groups, {{0}, {1}, {17}}, 64, 1e-5);
    }
    if (HasFatalFailure()) FAIL() << "seed " << seed << "\n" << to_string(kernel);
  }
  EXPECT_GT(steps, 60);
  EXPECT_GT(scheduled, 45);  // out of 60
}

}  // namespace
}  // namespace tenon::codegen
