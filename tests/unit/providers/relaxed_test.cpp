// Primitives that permit tier relaxed (EP_PRECISION_RELAXED), compared with the reference: matmul, convolution and
// attention round their factors to bf16 where the processor multiplies bf16, and keep f32 elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "primitives/reference/reference.h"
#include "primitives/text/format.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

using Dims = std::vector<int64_t>;

bool multiplies_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

Dims rows_of(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  return strides;
}
Dims channels_last(const Dims& dims) {
  Dims strides(dims.size(), 1);
  int64_t next = dims[1];
  for (size_t axis = dims.size(); axis-- > 2;) {
    strides[axis] = next;
    next *= dims[axis];
  }
  strides[0] = next;
  return strides;
}

// A primitive and the values of its operands.
struct Work {
  std::string name;
  ep_primitive_desc desc;
  std::vector<ep_scalar> scalars = {};
  std::vector<std::vector<float>> values = {};

  void draw() {
    std::mt19937 generator(7);
    values.clear();
    for (uint32_t i = 0; i < desc.operand_count; ++i) {
      values.push_back(random_floats(extent(desc.operands[i]), &generator));
    }
  }
};

ep_operand_desc f32(int32_t role, const Dims& dims, const Dims& strides) {
  return strided(role, EP_DTYPE_f32, dims, strides);
}

Work product(const std::string& name, const Dims& dst, const Dims& a, const Dims& a_strides, const Dims& b,
             const Dims& b_strides, bool constant = false) {
  Work work{name, descriptor(EP_PRIMITIVE_matmul, {f32(EP_ROLE_DST, dst, rows_of(dst)), f32(EP_ROLE_SRC, a, a_strides),
                                                   f32(EP_ROLE_SRC_B, b, b_strides)})};
  if (constant) work.desc.operands[2].flags = EP_OPERAND_FLAG_CONSTANT;
  return work;
}

std::vector<Work> products() {
  std::vector<Work> all = {
      product("square", {96, 96}, {96, 96}, {96, 1}, {96, 96}, {96, 1}),
      product("odd", {107, 129}, {107, 71}, {71, 1}, {71, 129}, {129, 1}),
      product("constant", {67, 129}, {67, 71}, {71, 1}, {71, 129}, {129, 1}, true),
      product("constant by columns", {33, 200}, {33, 151}, {151, 1}, {151, 200}, {1, 151}, true),
      product("one row by a constant", {1, 700}, {1, 600}, {600, 1}, {600, 700}, {700, 1}, true),
      product("turned", {107, 129}, {107, 71}, {1, 107}, {71, 129}, {1, 71}),
      product("slices", {107, 129}, {107, 71}, {100, 1}, {71, 129}, {150, 1}),
      product("batch", {3, 99, 66}, {3, 99, 65}, rows_of({3, 99, 65}), {3, 65, 66}, rows_of({3, 65, 66})),
      product("batch of one matrix", {3, 70, 66}, {3, 70, 65}, rows_of({3, 70, 65}), {3, 65, 66}, {0, 66, 1}),
      product("heads", {2, 3, 100, 80}, {2, 3, 100, 64}, {19200, 64, 192, 1}, {2, 3, 64, 80}, {15360, 64, 1, 192}),
  };
  Work bias = all[1];
  bias.name = "bias and relu";
  bias.desc.operands[bias.desc.operand_count++] = f32(EP_ROLE_BIAS, {107, 129}, {0, 1});
  then_relu(&bias.desc);
  bias.scalars.resize(8);
  for (ep_scalar& scalar : bias.scalars) scalar.dtype = EP_DTYPE_f32;
  all.push_back(bias);
  Work residual = all[2];
  residual.name = "residual";
  then_add_residual(&residual.desc);
  all.push_back(residual);
  return all;
}

struct Window {
  Dims src, weight, dst;
  int64_t groups = 1, stride = 1, dilation = 1, pad = 0;
  bool transposed = false;
};

Work convolution(const std::string& name, const Window& w, bool last, bool constant) {
  const auto order = [&](const Dims& dims) { return last ? channels_last(dims) : rows_of(dims); };
  Work work{name, descriptor(EP_PRIMITIVE_convolution,
                             {f32(EP_ROLE_DST, w.dst, order(w.dst)), f32(EP_ROLE_SRC, w.src, order(w.src)),
                              f32(EP_ROLE_WEIGHT, w.weight, rows_of(w.weight))})};
  ep_convolution_attributes& at = work.desc.attributes.convolution;
  at.spatial_rank = static_cast<int32_t>(w.src.size()) - 2;
  at.transposed = w.transposed ? 1 : 0;
  at.groups = w.groups;
  for (int32_t axis = 0; axis < at.spatial_rank; ++axis) {
    at.stride[axis] = w.stride;
    at.dilation[axis] = w.dilation;
    at.pad_low[axis] = at.pad_high[axis] = w.pad;
  }
  if (constant) work.desc.operands[2].flags = EP_OPERAND_FLAG_CONSTANT;
  return work;
}

std::vector<Work> convolutions() {
  const std::pair<const char*, Window> windows[] = {
      {"3x3", {{2, 32, 14, 13}, {40, 32, 3, 3}, {2, 40, 14, 13}, 1, 1, 1, 1}},
      {"1x1", {{2, 64, 14, 13}, {48, 64, 1, 1}, {2, 48, 14, 13}}},
      {"odd channels", {{1, 33, 17, 15}, {35, 33, 3, 3}, {1, 35, 17, 15}, 1, 1, 1, 1}},
      {"stride", {{2, 32, 15, 15}, {64, 32, 3, 3}, {2, 64, 8, 8}, 1, 2, 1, 1}},
      {"dilation", {{1, 32, 20, 20}, {32, 32, 3, 3}, {1, 32, 20, 20}, 1, 1, 2, 2}},
      {"groups", {{1, 64, 16, 16}, {64, 32, 3, 3}, {1, 64, 16, 16}, 2, 1, 1, 1}},
      {"line", {{2, 32, 100}, {48, 32, 5}, {2, 48, 100}, 1, 1, 1, 2}},
      {"volume", {{1, 16, 8, 9, 10}, {24, 16, 3, 3, 3}, {1, 24, 8, 9, 10}, 1, 1, 1, 1}},
      {"transposed", {{1, 64, 10, 10}, {64, 32, 3, 3}, {1, 32, 19, 19}, 1, 2, 1, 1, true}},
  };
  std::vector<Work> all;
  for (const auto& [name, window] : windows) {
    for (const bool last : {false, true}) {
      for (const bool constant : {false, true}) {
        // Planes of one tap stay f32.
        if (!last && window.weight.back() == 1) continue;
        all.push_back(
            convolution(fmt::format("{}{}{}", name, last ? ", channels last" : "", constant ? ", constant" : ""),
                        window, last, constant));
      }
    }
  }
  Work relu = convolution("bias and relu", windows[0].second, true, true);
  relu.desc.operands[relu.desc.operand_count++] = f32(EP_ROLE_BIAS, {40}, {1});
  then_relu(&relu.desc);
  relu.scalars.resize(8);
  for (ep_scalar& scalar : relu.scalars) scalar.dtype = EP_DTYPE_f32;
  all.push_back(relu);
  return all;
}

Work attention(const std::string& name, int64_t queries, int64_t keys, int64_t width, bool causal) {
  const auto four = [](int32_t role, int64_t rows, int64_t columns) {
    const Dims dims = {2, 3, rows, columns};
    return f32(role, dims, rows_of(dims));
  };
  Work work{name,
            descriptor(EP_PRIMITIVE_attention, {four(EP_ROLE_DST, queries, width), four(EP_ROLE_SRC, queries, width),
                                                four(EP_ROLE_SRC_B, keys, width), four(EP_ROLE_SRC_C, keys, width)})};
  work.desc.attributes.attention = {EP_ATTENTION_START, 0, -1, causal ? 0 : -1};
  work.scalars.resize(2);
  for (ep_scalar& scalar : work.scalars) scalar.dtype = EP_DTYPE_f64;
  work.scalars[0].value.f64 = 0.5;
  return work;
}

ep_support_info support(OpenProvider& cpu, const ep_primitive_desc& desc) {
  ep_support_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_SUPPORT_INFO;
  ep_error* error = nullptr;
  EXPECT_EQ(cpu.ops.primitive_support(cpu.device, &desc, &info, &error), EP_STATUS_OK) << cpu.host.sentence();
  return info;
}

std::vector<void*> addresses_of(std::vector<std::vector<float>>* values) {
  std::vector<void*> addresses;
  for (std::vector<float>& each : *values) addresses.push_back(each.data());
  return addresses;
}

std::vector<float> computed(OpenProvider& cpu, const Work& work, int32_t precision, std::string* implementation) {
  ep_primitive_desc desc = work.desc;
  desc.precision = precision;
  std::vector<std::vector<float>> values = work.values;
  const LaunchResult run = run_once(cpu, desc, addresses_of(&values), work.scalars);
  EXPECT_EQ(run.status, EP_STATUS_OK) << work.name << ": " << cpu.host.sentence();
  *implementation = run.implementation;
  return values[0];
}

std::vector<float> referenced(const Work& work, bool magnitudes) {
  std::vector<std::vector<float>> values = work.values;
  ep_primitive_desc desc = work.desc;
  if (magnitudes) {
    desc.epilogue_count = 0;
    for (std::vector<float>& each : values) {
      for (float& value : each) value = std::abs(value);
    }
    while (desc.operands[desc.operand_count - 1].role == EP_ROLE_EPILOGUE_0) --desc.operand_count;
  }
  ep_fault fault{};
  EXPECT_TRUE(reference::run(desc, addresses_of(&values).data(), work.scalars.data(),
                             static_cast<uint32_t>(work.scalars.size()), &fault)
                  .ok());
  return values[0];
}

// The greatest error of `got`, where an error is divided by the magnitude of its result.
double worst(const std::vector<float>& got, const std::vector<float>& want, const std::vector<float>& magnitude) {
  double most = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(std::isfinite(got[i])) << i;
    most = std::max(most, std::abs(static_cast<double>(got[i]) - want[i]) / std::max(1e-3, double{magnitude[i]}));
  }
  return most;
}

// The greatest error of a product whose factors are rounded to bf16, and more than the error of a product of f32.
constexpr double rounding = 1.01 / 256;
constexpr double unrounded = 1.0 / (1 << 17);

class Relaxed : public testing::Test {
 protected:
  void SetUp() override {
    cpu = open_on_target("avx3");
    if (cpu == nullptr || !multiplies_bf16()) GTEST_SKIP() << "this processor does not multiply bf16";
  }

  // Checks that `work` is rounded to bf16 if it may be, with errors of at most `bound`, and else is not.
  void check(Work work, double bound, bool by_magnitude) const {
    work.draw();
    std::string relaxed_by, default_by;
    const std::vector<float> relaxed = computed(*cpu, work, EP_PRECISION_RELAXED, &relaxed_by);
    const std::vector<float> exact = computed(*cpu, work, EP_PRECISION_DEFAULT, &default_by);
    const std::vector<float> want = referenced(work, false);
    const std::vector<float> magnitude = by_magnitude ? referenced(work, true) : std::vector<float>(want.size(), 1.0F);
    EXPECT_EQ(relaxed_by, "bf16") << work.name;
    EXPECT_NE(default_by, "bf16") << work.name;
    const double error = worst(relaxed, want, magnitude);
    EXPECT_LE(error, bound) << work.name;
    EXPECT_GE(error, unrounded) << work.name << ": nothing was rounded";
    EXPECT_LE(worst(exact, want, magnitude), unrounded) << work.name << ": " << default_by;
    ep_primitive_desc desc = work.desc;
    EXPECT_EQ(support(*cpu, desc).flags & EP_SUPPORT_FLAG_RELAXED, 0U) << work.name;
    desc.precision = EP_PRECISION_RELAXED;
    EXPECT_NE(support(*cpu, desc).flags & EP_SUPPORT_FLAG_RELAXED, 0U) << work.name;
  }

  std::unique_ptr<OpenProvider> cpu;
};

TEST_F(Relaxed, MatmulRoundsItsFactors) {
  for (const Work& work : products()) check(work, rounding, true);
}

TEST_F(Relaxed, ConvolutionRoundsItsFactors) {
  for (const Work& work : convolutions()) check(work, rounding, true);
}

TEST_F(Relaxed, AttentionRoundsItsFactors) {
  check(attention("whole blocks", 48, 128, 64, false), 0.02, false);
  check(attention("odd", 61, 150, 33, false), 0.02, false);
  check(attention("causal", 61, 61, 40, true), 0.02, false);
  check(attention("few", 9, 131, 17, false), 0.02, false);
}

// The host packs a constant matrix as bf16: half the bytes.
TEST_F(Relaxed, PacksConstantsAsBf16) {
  for (Work work : {product("", {64, 256}, {64, 512}, {512, 1}, {512, 256}, {256, 1}, true),
                    convolution("", {{1, 64, 8, 8}, {64, 64, 3, 3}, {1, 64, 8, 8}, 1, 1, 1, 1}, true, true)}) {
    work.desc.precision = EP_PRECISION_RELAXED;
    ep_primitive* primitive = nullptr;
    ep_primitive_info info{};
    info.struct_size = sizeof info;
    info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
    ep_error* error = nullptr;
    ASSERT_EQ(cpu->ops.primitive_create(cpu->device, &work.desc, &primitive, &info, &error), EP_STATUS_OK);
    EXPECT_EQ(info.pack_bytes, static_cast<uint64_t>(extent(work.desc.operands[2])) * 2);
    EXPECT_NE(info.pack_layout, 0U);
    cpu->ops.primitive_destroy(cpu->device, primitive);
  }
}

TEST_F(Relaxed, KeepsNaNAndInfinities) {
  for (Work work : {product("product", {64, 64}, {64, 64}, {64, 1}, {64, 64}, {64, 1}, true),
                    convolution("convolution", {{1, 64, 1, 64}, {64, 64, 1, 1}, {1, 64, 1, 64}}, true, true)}) {
    work.draw();
    for (float& value : work.values[2]) value = std::abs(value) + 0.5F;
    work.values[1][3] = std::nanf("");                                  // the first row or pixel
    work.values[1][64] = std::numeric_limits<float>::infinity();        // the second
    work.values[1][2 * 64] = std::numeric_limits<float>::denorm_min();  // the third
    std::string implementation;
    const std::vector<float> got = computed(*cpu, work, EP_PRECISION_RELAXED, &implementation);
    ASSERT_EQ(implementation, "bf16");
    for (size_t j = 0; j < 64; ++j) {
      EXPECT_TRUE(std::isnan(got[j])) << work.name << " " << j;
      EXPECT_EQ(got[64 + j], std::numeric_limits<float>::infinity()) << work.name << " " << j;
      EXPECT_TRUE(std::isfinite(got[2 * 64 + j])) << work.name << " " << j;
    }
  }
}

TEST_F(Relaxed, SmallAndOtherWorkStaysF32) {
  Work small = product("small", {8, 8}, {8, 8}, {8, 1}, {8, 8}, {8, 1});
  Work wide = product("f64", {64, 64}, {64, 64}, {64, 1}, {64, 64}, {64, 1});
  for (uint32_t i = 0; i < wide.desc.operand_count; ++i) wide.desc.operands[i].dtype = EP_DTYPE_f64;
  const Window each = {{1, 64, 32, 32}, {64, 1, 3, 3}, {1, 64, 32, 32}, 64, 1, 1, 1};
  Work depthwise = convolution("depthwise", each, true, true);
  for (Work* work : {&small, &wide, &depthwise}) {
    work->desc.precision = EP_PRECISION_RELAXED;
    EXPECT_EQ(support(*cpu, work->desc).flags & EP_SUPPORT_FLAG_RELAXED, 0U) << work->name;
  }
}

TEST(RelaxedElsewhere, TargetsWithoutProductsOfBf16IgnoreThePermission) {
  for (const char* target : {"baseline", "avx2"}) {
    const std::unique_ptr<OpenProvider> cpu = open_on_target(target);
    if (cpu == nullptr) continue;
    for (Work work : {products()[1], convolutions()[1], attention("attention", 20, 70, 32, false)}) {
      work.draw();
      std::string relaxed_by, default_by;
      const std::vector<float> relaxed = computed(*cpu, work, EP_PRECISION_RELAXED, &relaxed_by);
      EXPECT_EQ(relaxed, computed(*cpu, work, EP_PRECISION_DEFAULT, &default_by)) << work.name << " on " << target;
      EXPECT_EQ(relaxed_by, default_by);
      work.desc.precision = EP_PRECISION_RELAXED;
      EXPECT_EQ(support(*cpu, work.desc).flags & EP_SUPPORT_FLAG_RELAXED, 0U) << work.name << " on " << target;
    }
  }
}

}  // namespace
}  // namespace tenon::provider
