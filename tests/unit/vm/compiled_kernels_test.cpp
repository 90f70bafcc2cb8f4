// Kernels of compiled modules on a device: text in, numbers out, through segments.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "core/primitive/compiled_module.h"
#include "core/tensor/device.h"
#include "core/vm/segment.h"
#include "primitives/text/format.h"

namespace tenon::testing {
namespace {

using vm::SegmentAddress;

struct Row {
  int64_t length;
  float epsilon;
  int64_t rows;
};

// A hand-written kernel in each dialect: its items are rows, one work-item each.
struct Texts {
  int32_t dialect;
  uint32_t group;
  const char* rms;
  const char* look;
  const char* warning;  // a line that the compiler warns of
};
const Texts all_texts[] = {{EP_DIALECT_C, 1, R"(
struct Row { int64_t length; float epsilon; int64_t rows; };
void rms(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local) {
  const struct Row* p = parameters;
  const float* x = buffers[0];
  float* y = buffers[1];
  for (int64_t i = begin; i < end; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < p->length; ++j) sum += x[i * p->length + j] * x[i * p->length + j];
    const float scale = 1 / __builtin_sqrtf(sum / p->length + p->epsilon);
    for (int64_t j = 0; j < p->length; ++j) y[i * p->length + j] = x[i * p->length + j] * scale;
  }
}
)",
                            R"(
void look(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local, EP_FAULT_PARAMETER) {
  const float* x = buffers[0];
  float* y = buffers[1];
  for (int64_t i = begin; i < end; ++i) {
    if (x[i] < 0) ep_raise(1, 0, (int64_t)x[i], 5);
    y[i] = x[i];
  }
}
)",
                            "#warning this text is compiled\n"},
                           {EP_DIALECT_CUDA_C, 32, R"(
struct Row { int64_t length; float epsilon; int64_t rows; };
extern "C" __global__ void rms(const float* x, float* y, Row p) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= p.rows) return;
  float sum = 0;
  for (int64_t j = 0; j < p.length; ++j) sum += x[i * p.length + j] * x[i * p.length + j];
  const float scale = 1 / sqrtf(sum / p.length + p.epsilon);
  for (int64_t j = 0; j < p.length; ++j) y[i * p.length + j] = x[i * p.length + j] * scale;
}
)",
                            R"(
struct Row { int64_t length; float epsilon; int64_t rows; };
extern "C" __global__ void look(const float* x, float* y, Row p, EP_FAULT_PARAMETER) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= p.rows) return;
  if (x[i] < 0) ep_raise(1, 0, (int64_t)x[i], 5);
  y[i] = x[i];
}
)",
                            "#warning this text is compiled\n"},
                           {EP_DIALECT_OPENCL_C, 32, R"(
typedef struct { int64_t length; float epsilon; int64_t rows; } Row;
__kernel void rms(__global const float* restrict x, __global float* y, const Row p) {
  const int64_t i = get_global_id(0);
  if (i >= p.rows) return;
  float sum = 0;
  for (int64_t j = 0; j < p.length; ++j) sum += x[i * p.length + j] * x[i * p.length + j];
  const float scale = 1 / sqrt(sum / p.length + p.epsilon);
  for (int64_t j = 0; j < p.length; ++j) y[i * p.length + j] = x[i * p.length + j] * scale;
}
)",
                            R"(
typedef struct { int64_t length; float epsilon; int64_t rows; } Row;
__kernel void look(__global const float* x, __global float* y, Row p, EP_FAULT_PARAMETER) {
  const int64_t i = get_global_id(0);
  if (i >= p.rows) return;
  if (x[i] < 0) ep_raise(1, 0, (int64_t)x[i], 5);
  y[i] = x[i];
}
)",
                            "#warning this text is compiled\n"},
                           {EP_DIALECT_GLSL, 32, R"(
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float v[]; };
struct Parameters { int64_t row; float epsilon; int64_t rows; };
EP_PARAMETERS
void rms() {
  const uint i = gl_GlobalInvocationID.x;
  const uint row = uint(ep_parameters.row);
  if (i >= ep_parameters.rows) return;
  Floats x = Floats(ep_buffers[0]);
  Floats y = Floats(ep_buffers[1]);
  float sum = 0;
  for (uint j = 0; j < row; ++j) sum += x.v[i * row + j] * x.v[i * row + j];
  const float scale = 1 / sqrt(sum / float(row) + ep_parameters.epsilon);
  for (uint j = 0; j < row; ++j) y.v[i * row + j] = x.v[i * row + j] * scale;
}
)",
                            R"(
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float v[]; };
struct Parameters { int64_t row; float epsilon; int64_t rows; };
EP_PARAMETERS
void look() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= ep_parameters.rows) return;
  const float x = Floats(ep_buffers[0]).v[i];
  if (x < 0) ep_raise(1, 0, int64_t(x), 5);
  Floats(ep_buffers[1]).v[i] = x;
}
)",
                            "#extension GL_EXT_not_there : enable\n"}};

// On the device that KERNELS_DEVICE names, in its first dialect.
class Kernels : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* name = std::getenv("KERNELS_DEVICE");
    device = Device(name != nullptr ? name : "cpu").state();
    Status why;
    const std::vector<Dialect> dialects = dialects_of(device, &why);
    if (dialects.empty()) GTEST_SKIP() << why.message();
    for (const Texts& one : all_texts) {
      if (one.dialect == dialects[0].info.dialect) texts = &one;
    }
    if (texts == nullptr) GTEST_SKIP() << "no text in dialect " << dialects[0].info.dialect;
    for (const bool looks : {false, true}) {
      auto made = compile_module(device, source(looks));
      ASSERT_TRUE(made.ok()) << made.status().message();
      modules.push_back(std::move(made).value());
    }
  }
  ModuleText source(bool looks) const {
    ModuleText made;
    made.name = "rows";
    made.dialect = texts->dialect;
    made.text = looks ? texts->look : texts->rms;
    made.entries.push_back(
        {looks ? "look" : "rms", looks ? EP_ENTRY_FLAG_FAULTS : 0, 2, sizeof(Row), {texts->group, 1, 1}, 0});
    return made;
  }
  // Runs `rms` or `look` on rows of x. The result is poisoned before.
  Result<std::vector<float>> run(bool looks, const std::vector<float>& x, const Row& row) {
    const SegmentAddress buffers[] = {SegmentAddress::binding(0, 0), SegmentAddress::binding(1, 0)};
    const NodeName name{{"fused"}, vm::kNoInputs, {}, "node 3 (/norm)"};
    vm::SegmentBuilder builder(device, 2, nullptr);
    vm::SegmentKernelLaunch launch;
    launch.module = modules[looks ? 1 : 0];
    launch.kernel = 0;
    launch.buffers = buffers;
    launch.parameters = std::as_bytes(std::span(&row, 1));
    launch.groups = {(static_cast<uint64_t>(row.rows) + texts->group - 1) / texts->group, 1, 1};
    launch.name = &name;
    TENON_RETURN_IF_ERROR(builder.add(launch));
    const auto segment = builder.finish();
    const uint64_t bytes = x.size() * sizeof(float);
    TENON_ASSIGN_OR_RETURN(Storage * src, Storage::make_aligned(device, bytes + shift));
    const StorageOwner keeps_src(src);
    TENON_ASSIGN_OR_RETURN(Storage * dst, Storage::make_aligned(device, bytes + shift));
    const StorageOwner keeps_dst(dst);
    std::vector<float> y(x.size(), NAN);
    TENON_RETURN_IF_ERROR(vm::upload({src, shift, true, true}, x.data(), bytes, {}));
    TENON_RETURN_IF_ERROR(vm::upload({dst, shift, true, true}, y.data(), bytes, {}));
    const vm::Operand bindings[] = {{src, shift, false, false}, {dst, shift, true, true}};
    TENON_RETURN_IF_ERROR(vm::run({segment.get(), bindings, 0}));
    TENON_RETURN_IF_ERROR(vm::download(y.data(), {dst, shift, false, false}, bytes));
    return y;
  }

  // Buffers begin at any offset in their memory, because the host splits blocks anywhere.
  static constexpr uint64_t shift = 20;
  DeviceState* device = nullptr;
  const Texts* texts = nullptr;
  std::vector<std::shared_ptr<CompiledModule>> modules;
};

TEST_F(Kernels, GiveWhatTheTextSays) {
  std::mt19937 generator(3);
  std::normal_distribution<float> number(0, 2);
  for (const auto& [rows, length] : {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {2000, 100}}) {
    std::vector<float> x(static_cast<size_t>(rows * length));
    for (float& one : x) one = number(generator);
    const Row row{length, 1e-6f, rows};
    const auto y = run(false, x, row);
    ASSERT_TRUE(y.ok()) << y.status().message();
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < length; ++j) sum += std::pow(x[static_cast<size_t>(i * length + j)], 2);
      const double scale = 1 / std::sqrt(sum / static_cast<double>(length) + 1e-6);
      for (int64_t j = 0; j < length; ++j) {
        const auto at = static_cast<size_t>(i * length + j);
        ASSERT_NEAR(y.value()[at], x[at] * scale, 1e-5 * std::abs(x[at] * scale)) << i << ", " << j;
      }
    }
  }
}

TEST_F(Kernels, ThatMeetBadDataNameTheirNode) {
  std::vector<float> x(100, 2);
  const Row row{1, 0, static_cast<int64_t>(x.size())};
  EXPECT_TRUE(run(true, x, row).ok());
  x[60] = -9;
  const auto y = run(true, x, row);
  ASSERT_FALSE(y.ok());
  EXPECT_NE(y.status().message().find("node 3 (/norm)"), std::string::npos) << y.status().message();
  EXPECT_NE(y.status().message().find("-9"), std::string::npos) << y.status().message();
}

TEST_F(Kernels, AreKeptFromProcessToProcessByTheHost) {
  ModuleText warned = source(false);
  warned.text = texts->warning + warned.text;
  std::string first, second;
  ASSERT_TRUE(compile_module(device, warned, &first).ok());
  ASSERT_TRUE(compile_module(device, warned, &second).ok());
  EXPECT_EQ(second, "") << "nothing was compiled";
}

}  // namespace
}  // namespace tenon::testing
