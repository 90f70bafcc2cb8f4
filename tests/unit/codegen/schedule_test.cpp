// Schedule primitives: a kernel computes the same after each step, and an illegal step is refused with a sentence.
#include "core/codegen/schedule/schedule.h"

#include <gtest/gtest.h>

#include "core/codegen/loop/interpret.h"
#include "tests/unit/codegen/compiled.h"

namespace tenon::codegen {
namespace {

const std::string kSoftmax =
    "kernel softmax\nsize n in [0, 4096]\naxis b 3\naxis i n\naxis r 40\nin x f32 120*n\nout y f32 120*n\n"
    "m = max f32 at b i over r: x[40*n*b + 40*i + r]\n"
    "e = value f32 at b i r: exp(sub(x[40*n*b + 40*i + r], m))\n"
    "s = sum f32 at b i over r: e\n"
    "u = store y[40*n*b + 40*i + r] at b i r: div(e, s)\n";
enum : Id { kM, kE, kS, kU };

Id axis_named(const Kernel& kernel, std::string_view name) {
  for (Id id = 0; id < kernel.axes.size(); ++id) {
    if (kernel.axes[id].name == name) return id;
  }
  ADD_FAILURE() << name;
  return 0;
}

void expect_same(const Kernel& plain, const Kernel& kernel) {
  const std::vector<int64_t> sizes(plain.parameters.size(), 5);
  Memory expected(plain, sizes, 3);
  Memory actual(plain, sizes, 3);
  const Status before = interpret(plain, sizes, expected.addresses());
  ASSERT_TRUE(before.ok()) << before.message();
  const Status after = interpret(kernel, sizes, actual.addresses());
  ASSERT_TRUE(after.ok()) << after.message() << "\n" << to_string(kernel);
  expect_near(plain, expected, actual, 2, 0, to_string(kernel));
}

void expect_step(const Kernel& plain, const Kernel& kernel, const Status& status) {
  ASSERT_TRUE(status.ok()) << status.message();
  expect_same(plain, kernel);
}

void expect_refusal(Kernel* kernel, const Status& status, const std::string& sentence, const std::string& before) {
  EXPECT_EQ(status.message(), sentence);
  EXPECT_EQ(to_string(*kernel), before) << "A refused step left something behind.";
}

TEST(Schedule, EachStepOfASoftmaxComputesTheSame) {
  const Kernel plain = parsed(kSoftmax);
  Kernel kernel = plain;
  const Result<Id> rows = merge(&kernel, axis_named(kernel, "b"), axis_named(kernel, "i"));
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  expect_same(plain, kernel);
  const Id r = axis_named(kernel, "r");
  expect_step(plain, kernel, make_loops(&kernel, rows.value()));
  expect_step(plain, kernel, tile(&kernel, kM, r, 16));
  expect_step(plain, kernel, vectorise(&kernel, kE, r, 2));
  expect_step(plain, kernel, compute_at(&kernel, kS, kE));
  expect_step(plain, kernel, hold(&kernel, kS, Storage::registers));
  expect_step(plain, kernel, vectorise(&kernel, kU, r, 1));
  expect_step(plain, kernel, tile(&kernel, kM, rows.value(), 4));
  EXPECT_EQ(to_string(kernel).substr(to_string(kernel).find("loops")),
            "loops\n  items b_i step 4\n    serial b_i\n      serial r step 16\n        serial r\n          m\n"
            "      vector r unroll 2\n        e\n        s\n      vector r\n        u\n");
  expect_compiles(kernel, {{0}, {1}, {5}}, 16, 0);
}

TEST(Schedule, ValuesAreInlined) {
  const Kernel plain = parsed(kSoftmax);
  Kernel kernel = plain;
  expect_step(plain, kernel, make_loops(&kernel, axis_named(kernel, "i")));
  expect_step(plain, kernel, inline_stage(&kernel, kE));
  expect_step(plain, kernel, reorder(&kernel, kU, axis_named(kernel, "b")));
  expect_step(plain, kernel, vectorise(&kernel, kS, axis_named(kernel, "r"), 1));
  expect_compiles(kernel, {{5}}, 16, 0);
}

TEST(Schedule, ASumInTwoSteps) {
  const Kernel plain =
      parsed("kernel total\naxis r 48\nin x f32 48\nout y f32 1\ns = sum f32 over r: x[r]\nu = store y[0]: s\n");
  Kernel kernel = plain;
  const Result<Id> first = reduce_in_two_steps(&kernel, 0, 0, 4);
  ASSERT_TRUE(first.ok()) << first.status().message();
  expect_same(plain, kernel);
  EXPECT_EQ(kernel.stages[0].axes.size(), 1U);
  const Id one = add_unit_axis(&kernel);
  expect_step(plain, kernel, make_loops(&kernel, one));
  expect_compiles(kernel, {{}}, 8, 1e-6);
}

TEST(Schedule, AxesOfOneExtentAreAligned) {
  const Kernel plain = parsed(
      "kernel aligned\nsize n in [0, 4096]\naxis i n\naxis r 8\naxis j 8\nin x f32 8*n\nout y f32 8*n\n"
      "s = sum f32 at i over r: x[8*i + r]\nu = store y[8*i + j] at i j: mul(x[8*i + j], s)\n");
  Kernel kernel = plain;
  expect_step(plain, kernel, align(&kernel, 2, 1));
  EXPECT_EQ(kernel.stages[1].axes, (std::vector<Id>{0, 1}));
}

TEST(Schedule, RefusesWhatIsIllegal) {
  Kernel kernel = parsed(kSoftmax);
  const Id b = axis_named(kernel, "b");
  const Id i = axis_named(kernel, "i");
  const Id r = axis_named(kernel, "r");
  const std::string plain = to_string(kernel);
  expect_refusal(&kernel, merge(&kernel, i, r).status(),
                 "merge: stage m has one of the axes i and r without the other.", plain);
  expect_refusal(&kernel, align(&kernel, i, r), "align: axis i has extent S0, but axis r has extent 40.", plain);
  expect_refusal(&kernel, reduce_in_two_steps(&kernel, kS, r, 7).status(),
                 "reduce_in_two_steps: 7 chunks do not divide the extent 40 of axis r.", plain);
  expect_refusal(&kernel, make_loops(&kernel, r), "Stage m reduces over r, whose positions are the items of a launch.",
                 plain);
  ASSERT_TRUE(make_loops(&kernel, i).ok());
  const std::string loops = to_string(kernel);
  expect_refusal(&kernel, hold(&kernel, kE, Storage::registers),
                 "Stage s reads stage e, which is in registers, outside of the loop over b that computes it.", loops);
  expect_refusal(&kernel, compute_at(&kernel, kU, kS),
                 "Stage u reads stage s inside of the loop over r that computes it.", loops);
  expect_refusal(&kernel, compute_at(&kernel, kM, kE),
                 "Stage e reads stage m inside of the loop over r that computes it.", loops);
  expect_refusal(&kernel, inline_stage(&kernel, kS), "Stage s is not a value, so it cannot be inlined.", loops);
  expect_refusal(&kernel, vectorise(&kernel, kE, i, 1),
                 "vectorise: the positions of i are the items of a launch; tile it first.", loops);
  expect_refusal(&kernel, vectorise(&kernel, kE, r, 17),
                 "The loop over r has step 1 and unroll 17; a step is at least 1, unroll from 1 to 16.", loops);
  ASSERT_TRUE(vectorise(&kernel, kE, b, 1).ok());
  const std::string vector = to_string(kernel);
  expect_refusal(&kernel, vectorise(&kernel, kE, r, 1), "The vector loop over r is inside of another vector loop.",
                 vector);
}

}  // namespace
}  // namespace tenon::codegen
