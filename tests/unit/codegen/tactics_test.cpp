// Kernels without loops, scheduled for a CPU and for groups of work-items: the interpreter before and after, and the
// compiled text.
#include "core/codegen/tactics/tactics.h"

#include <gtest/gtest.h>

#include "core/codegen/loop/interpret.h"
#include "primitives/text/format.h"
#include "tests/unit/codegen/compiled.h"
#include "tests/unit/codegen/groups.h"

namespace tenon::codegen {
namespace {

using Sizes = std::vector<std::vector<int64_t>>;

// The loops of the last kernel on a device of groups, as text.
std::string last_groups;

// The loops of the kernel, as text.
std::string expect_schedules(const std::string& text, const Sizes& sizes, double ulps, double absolute = 0) {
  const Kernel plain = parsed(text);
  Kernel kernel = plain;
  const Status status = schedule_for_cpu(&kernel);
  EXPECT_TRUE(status.ok()) << status.message() << "\n" << text;
  if (!status.ok()) return {};
  const std::string scheduled = to_string(kernel);
  EXPECT_EQ(to_string(parsed(scheduled)), scheduled);
  for (const std::vector<int64_t>& parameters : sizes) {
    Memory expected(plain, parameters, 7);
    Memory actual(plain, parameters, 7);
    const Status before = interpret(plain, parameters, expected.addresses());
    EXPECT_TRUE(before.ok()) << before.message() << "\n" << text;
    const Status after = interpret(kernel, parameters, actual.addresses());
    EXPECT_TRUE(after.ok()) << after.message() << "\n" << scheduled;
    expect_near(plain, expected, actual, 1, absolute, "interpreted " + plain.name);
  }
  expect_compiles(kernel, sizes, ulps, absolute);
  if (testing::Test::HasFailure()) ADD_FAILURE() << scheduled;
  last_groups = expect_groups(plain, sizes, ulps, absolute);
  return scheduled.substr(scheduled.find("loops\n"));
}

TEST(CpuTactics, RmsNormReadsRows) {
  EXPECT_EQ(
      expect_schedules("kernel rms_norm\nsize n in [0, 65536]\naxis i n\naxis r 100\nin x f32 100*n\nin w f32 100\n"
                       "out y f32 100*n\n"
                       "s = sum f32 at i over r: square(x[100*i + r])\n"
                       "t = value f32 at i: rsqrt(add(div(s, 100:f32), 1e-06:f32))\n"
                       "v = value f32 at i r: mul(x[100*i + r], t)\n"
                       "u = store y[100*i + r] at i r: mul(v, w[r])\n",
                       {{0}, {1}, {3}}, 8),
      "loops\n  items i\n    vector r unroll 4\n      s\n    t\n    vector r unroll 4\n      v\n      u\n");
  EXPECT_EQ(
      last_groups,
      "loops\n  items i step 2\n    work_items i width 2 dim 1\n      work_items r width 128\n        row_of_0_1\n"
      "        s\n      t\n      work_items r width 128\n        v\n        u\n");
}

TEST(CpuTactics, SoftmaxKeepsExponentialsInARow) {
  EXPECT_EQ(
      expect_schedules("kernel softmax\nsize n in [0, 65536]\naxis i n\naxis r 50\nin x f32 50*n\nout y f32 50*n\n"
                       "m = max f32 at i over r: x[50*i + r]\n"
                       "d = value f32 at i r: sub(x[50*i + r], m)\n"
                       "e = value f32 at i r: exp(d)\n"
                       "s = sum f32 at i over r: e\n"
                       "u = store y[50*i + r] at i r: div(e, s)\n",
                       {{1}, {3}}, 16),
      "loops\n  items i\n    vector r unroll 4\n      m\n    vector r unroll 2\n      d\n      e\n      s\n"
      "    vector r unroll 4\n      u\n");
}

// The mask has one entry per batch, so batch, heads and queries are not one axis in memory; still each row is an item.
TEST(CpuTactics, RowsOfSeveralAxesAreItems) {
  EXPECT_EQ(
      expect_schedules("kernel masked\nsize b in [1, 64]\nsize n in [1, 512]\naxis i b\naxis h 3\naxis q n\naxis r n\n"
                       "in x f32 3*b*n^2\nin k f32 b*n\nout y f32 3*b*n^2\n"
                       "v = value f32 at i h q r: add(x[3*n^2*i + n^2*h + n*q + r], k[n*i + r])\n"
                       "m = max f32 at i h q over r: v\n"
                       "e = value f32 at i h q r: exp(sub(v, m))\n"
                       "s = sum f32 at i h q over r: e\n"
                       "u = store y[3*n^2*i + n^2*h + n*q + r] at i h q r: div(e, s)\n",
                       {{1, 7}, {2, 5}, {2, 70}}, 16)
          .substr(0, 20),
      "loops\n  items i_h_q\n");
  EXPECT_EQ(last_groups.substr(0, 20), "loops\n  items i_h_q\n");
}

TEST(CpuTactics, ElementwiseIsFlat) {
  EXPECT_EQ(expect_schedules("kernel gelu\nsize n in [0, 65536]\naxis i n\naxis j 50\nin x f32 50*n\nin z f32 50*n\n"
                             "out y f32 50*n\n"
                             "u = store y[50*i + j] at i j: add(gelu(x[50*i + j]), z[50*i + j])\n",
                             {{0}, {1}, {3}, {200}}, 8, 1e-6),
            "loops\n  items i_j step 4096\n    vector i_j unroll 2\n      u\n");
  EXPECT_EQ(last_groups, "loops\n  items i_j step 1024\n    work_items i_j width 256\n      u\n");
}

TEST(CpuTactics, ABiasKeepsItsAxis) {
  EXPECT_EQ(expect_schedules("kernel bias\nsize n in [0, 65536]\naxis i n\naxis j 50\nin x f32 50*n\nin b f32 50\n"
                             "out y f32 50*n\n"
                             "u = store y[50*i + j] at i j: tanh(add(x[50*i + j], b[j]))\n",
                             {{0}, {3}}, 8),
            "loops\n  items i\n    vector j unroll 2\n      u\n");
}

TEST(CpuTactics, ColumnsAreSummedLineAfterLine) {
  EXPECT_EQ(expect_schedules("kernel columns\nsize n in [0, 65536]\naxis j 1100\naxis r n\nin x f32 1100*n\n"
                             "out y f32 1100\nout z f32 1100\n"
                             "s = sum f32 at j over r: x[1100*r + j]\n"
                             "m = max f32 at j over r: x[1100*r + j]\n"
                             "t = store y[j] at j: mul(s, 2:f32)\n"
                             "u = store z[j] at j: m\n",
                             {{0}, {1}, {9}}, 64, 1e-5),
            "loops\n  items j step 64 unroll 32\n    serial r\n      vector j unroll 4\n        s\n        m\n"
            "    vector j unroll 4\n      t\n      u\n");
  EXPECT_EQ(
      last_groups,
      "loops\n  items j step 32\n    work_items j width 32\n      work_items r width 8 dim 1\n        s\n        m\n"
      "      t\n      u\n");
}

TEST(CpuTactics, ColumnSoftmax) {
  expect_schedules(
      "kernel column_softmax\nsize n in [0, 65536]\naxis j 70\naxis r 9\nin x f32 630*n\n"
      "axis b n\nout y f32 630*n\n"
      "m = max f32 at b j over r: x[630*b + 70*r + j]\n"
      "e = value f32 at b j r: exp(sub(x[630*b + 70*r + j], m))\n"
      "s = sum f32 at b j over r: e\n"
      "u = store y[630*b + 70*r + j] at b j r: div(e, s)\n",
      {{0}, {3}}, 16);
}

// Numbers that exist once per row are adjacent along i. There are many of them, but the elements of rows have more
// adjacent accesses, so the rows decide.
TEST(CpuTactics, RowsDecideAndNotWhatIsOfRows) {
  EXPECT_EQ(expect_schedules("kernel nll\nsize n in [0, 65536]\naxis i n\naxis r 50\nin x f32 50*n\nin t i64 n\n"
                             "out y f32 50*n\nout p f32 n\nout k i64 n\n"
                             "s = sum f32 at i over r: exp(x[50*i + r])\n"
                             "l = value f32 at i: log(s)\n"
                             "v = value f32 inlined at i r: sub(x[50*i + r], l)\n"
                             "q = max f32 at i over r: where(eq([r], t[i]), v, -inf:f32)\n"
                             "u = store y[50*i + r] at i r: v\n"
                             "w = store p[i] at i: q\n"
                             "z = store k[i] at i: t[i]\n",
                             {{0}, {1}, {3}}, 16, 1e-6),
            "loops\n  items i\n    vector r unroll 2\n      s\n    l\n    vector r unroll 4\n      q\n      u\n    w\n "
            "   z\n");
}

TEST(CpuTactics, TransposesReadLinesWhole) {
  EXPECT_EQ(
      expect_schedules("kernel transpose\nsize n in [0, 65536]\naxis i n\naxis j 50\nin x f32 50*n\nout y f32 50*n\n"
                       "u = store y[j*n + i] at i j: relu(x[50*i + j])\n",
                       {{0}, {37}, {150}}, 0),
      "loops\n  items i step 128\n    serial j step 256\n      serial j\n        vector i unroll 4\n          u\n");
}

// Blocks whose rows and lanes are not multiples of a tile, with two loads, one of which runs along the lanes.
TEST(CpuTactics, TransposesInsideOfAnItem) {
  EXPECT_EQ(expect_schedules("kernel transposes\nsize n in [0, 65536]\naxis b n\naxis i 150\naxis j 300\n"
                             "in x f32 45000*n\nin z i32 45000*n\nin w f32 150\nout y f32 45000*n\n"
                             "u = store y[45000*b + 150*j + i] at b i j: "
                             "add(mul(x[45000*b + 300*i + j], w[i]), f32(z[45000*b + 300*i + j]))\n",
                             {{0}, {1}, {3}}, 1),
            "loops\n  items b\n    serial i step 128\n      serial j step 256\n        serial j\n"
            "          vector i unroll 4\n            u\n");
}

// Few lanes: the items are blocks of rows, and a tile has all the rows of its block.
TEST(CpuTactics, TransposesOfFewLanes) {
  EXPECT_EQ(expect_schedules("kernel narrow\nsize n in [0, 65536]\naxis i 20\naxis j n\nin x f32 20*n\n"
                             "out y f32 20*n\nu = store y[20*j + i] at i j: relu(x[n*i + j])\n",
                             {{0}, {1}, {37}, {300}}, 0),
            "loops\n  items j step 256\n    serial i step 128\n      serial j\n        vector i unroll 4\n"
            "          u\n");
}

// Sums, and values that read columns again, in blocks of columns, with a length that no block divides.
TEST(CpuTactics, ColumnNormsReadBlocksOfColumns) {
  EXPECT_EQ(expect_schedules("kernel column_norm\nsize n in [0, 65536]\naxis b n\naxis i 100\naxis r 1100\n"
                             "in x f32 110000*n\nout y f32 110000*n\n"
                             "a = mean f32 at b r over i: x[110000*b + 1100*i + r]\n"
                             "d = value f32 at b i r: sub(x[110000*b + 1100*i + r], a)\n"
                             "q = mean f32 at b r over i: square(d)\n"
                             "t = value f32 at b r: rsqrt(add(q, 1e-05:f32))\n"
                             "u = store y[110000*b + 1100*i + r] at b i r: mul(d, t)\n",
                             {{0}, {2}}, 16, 1e-6),
            "loops\n  items b\n    serial r step 960\n      serial i\n        vector r unroll 4\n          a\n"
            "      serial i\n        vector r unroll 4\n          q\n      vector r unroll 4\n        t\n"
            "      serial i\n        vector r unroll 4\n          u\n");
}

// Boundaries of a concat between vectors and within them, and one along an axis other than the lanes' axis.
TEST(CpuTactics, ChoicesByPosition) {
  expect_schedules(
      "kernel joined\nsize n in [0, 65536]\naxis i n + 2\naxis j 75\nin x f32 37*n\nin y f32 11\nin z f32 27*n\n"
      "in w f32 75\nout v f32 75*n + 150\n"
      "%0 = lt([i], [n])\n%1 = ge([i], [n])\n%2 = lt([j], [37])\n%3 = lt([j], [48])\n"
      "%4 = where(%2, x[37*i + j if logical_and(%0, %2)], where(%3, y[j - 37 if logical_and(ge([j], [37]), %3)],"
      " z[27*i + j - 48 if logical_and(%0, ge([j], [48]))]))\n"
      "u = store v[75*i + j] at i j: where(%0, %4, where(logical_not(%1), x[37*i if %0], w[j if %1]))\n",
      {{0}, {1}, {5}}, 0);
}

TEST(CpuTactics, SumsOfManyColumnsReadLineAfterLine) {
  EXPECT_EQ(expect_schedules("kernel wide\nsize n in [0, 65536]\naxis c 3\naxis i n\naxis r 200\nin x f32 600*n\n"
                             "out y f32 600\ns = sum f32 at c r over i: x[200*n*c + 200*i + r]\n"
                             "u = store y[200*c + r] at c r: s\n",
                             {{0}, {1}, {21}}, 8, 1e-5),
            "loops\n  items c\n    serial i\n      vector r unroll 4\n        s\n    vector r unroll 4\n      u\n");
}

// The scores are cheap to recompute, but that would read two rows again.
TEST(CpuTactics, GroupsKeepWhatReadsRows) {
  expect_schedules(
      "kernel masked\nsize n in [0, 65536]\nsize m in [0, 512]\naxis i n\naxis r m\nin x f32 m*n\n"
      "in w f32 m*n\nout y f32 m*n\nv = value f32 at i r: add(mul(x[m*i + r], 0.125:f32), w[m*i + r])\n"
      "t = max f32 at i over r: v\nd = value f32 at i r: exp(sub(v, t))\ns = sum f32 at i over r: d\n"
      "u = store y[m*i + r] at i r: div(d, s)\n",
      {{0, 5}, {3, 70}, {70, 3}}, 8, 1e-6);
  EXPECT_EQ(last_groups,
            "loops\n  items i\n    work_items r width 256\n      v\n      t\n    work_items r width 256\n      d\n"
            "      s\n    work_items r width 256\n      u\n");
}

// The sums are stored along i, but far more is read along r.
TEST(CpuTactics, SumsOfRowsReadAlongRows) {
  EXPECT_EQ(expect_schedules("kernel squares\nsize n in [0, 65536]\nsize m in [0, 65536]\naxis i n\naxis r m\n"
                             "in x f32 m*n\nout y f32 n\ns = sum f32 at i over r: square(x[m*i + r])\n"
                             "u = store y[i] at i: s\n",
                             {{0, 5}, {1, 0}, {3, 70}, {70, 3}}, 8, 1e-5),
            "loops\n  items i\n    vector r unroll 4\n      s\n    u\n");
  EXPECT_EQ(last_groups, "loops\n  items i\n    work_items r width 256\n      s\n    u\n");
}

TEST(CpuTactics, ATreeOfReductions) {
  expect_schedules(
      "kernel tree\naxis i 5\naxis j 6\naxis k 40\nin x f32 1200\nout y f32 6\n"
      "m = max f32 at i j over k: x[240*i + 40*j + k]\n"
      "s = sum f32 at j over i: m\n"
      "u = store y[j] at j: s\n",
      {{}}, 4, 1e-6);
}

TEST(CpuTactics, AllElementsAtOnce) {
  expect_schedules(
      "kernel all\nsize n in [0, 65536]\naxis i n\naxis j 33\nin x f64 33*n\nout y f64 1\nout z f64 33*n\n"
      "s = mean f64 over i j: x[33*i + j]\n"
      "t = store y[0]: s\n"
      "u = store z[33*i + j] at i j: sub(x[33*i + j], s)\n",
      {{1}, {3}, {40}}, 32, 1e-14);
}

TEST(CpuTactics, LayerNormGivesThreeOutputs) {
  for (const std::string& type : {std::string("f16"), std::string("bf16")}) {
    expect_schedules(
        fmt::format("kernel layer_norm\nsize n in [0, 65536]\naxis i n\naxis r 70\nin x {0} 70*n\nin w {0} 70\n"
                    "in b {0} 70\nout y {0} 70*n\nout mean_out f32 n\nout scale_out f32 n\n"
                    "%0 = f32(x[70*i + r])\n"
                    "a = mean f32 at i over r: %0\n"
                    "d = value f32 at i r: sub(%0, a)\n"
                    "q = mean f32 at i over r: square(d)\n"
                    "t = value f32 at i: rsqrt(add(q, 1e-05:f32))\n"
                    "u = store y[70*i + r] at i r: {0}(fma(mul(d, t), f32(w[r]), f32(b[r])))\n"
                    "v = store mean_out[i] at i: a\n"
                    "z = store scale_out[i] at i: t\n",
                    type),
        {{1}, {3}}, 16, 1e-6);
  }
}

TEST(CpuTactics, IntegersBoolsAndConditions) {
  expect_schedules(
      "kernel mixed\nsize n in [0, 65536]\naxis i n\naxis j 20\nin x i8 20*n\nin m bool 20*n\nin h f32 10\n"
      "out y i8 20*n\nout z i64 n\nout c bool n\nout p f32 20*n\nout q u8 20*n\n"
      "%0 = i64(x[20*i + j])\n"
      "s = sum i64 at i over j: where(m[20*i + j], %0, 0:i64)\n"
      "g = any bool at i over j: gt(x[20*i + j], 90:i8)\n"
      "a = store y[20*i + j] at i j: add(mul(x[20*i + j], 3:i8), i8(where(lt([j], 7:i64), 1:i64, [i + j])))\n"
      "b = store z[i] at i: floor_div(s, 7:i64)\n"
      "d = store c[i] at i: g\n"
      "%1 = logical_and(ge([j], 5:i64), lt([j], 15:i64))\n"
      "e = store p[20*i + j] at i j: where(%1, h[j - 5 if %1], f32(%0))\n"
      "f = store q[20*i + j] at i j: u8(mul(f32(%0), -1.7:f32))\n",
      {{0}, {1}, {7}}, 0);
}

}  // namespace
}  // namespace tenon::codegen
