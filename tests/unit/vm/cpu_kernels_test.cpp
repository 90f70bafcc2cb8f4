// Kernels of compiled modules on the cpu device: C text in, numbers out, through segments on the caller.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/kernel/compiled_module.h"
#include "core/tensor/device.h"
#include "core/vm/segment.h"
#include "primitives/text/format.h"

namespace tenon::testing {
namespace {

using vm::SegmentAddress;

struct Row {
  int64_t length;
  float epsilon;
};

const char* const text = R"(
struct Row { int64_t length; float epsilon; };
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
void look(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local, EP_FAULT_PARAMETER) {
  const float* x = buffers[0];
  float* y = buffers[1];
  for (int64_t i = begin; i < end; ++i) {
    if (x[i] < 0) ep_raise(1, 0, (int64_t)x[i], 5);
    y[i] = x[i];
  }
}
)";

class CpuKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    device = Device("cpu").state();
    Status why;
    if (dialects_of(device, &why).empty()) GTEST_SKIP() << why.message();
    ModuleText source;
    source.name = "rows";
    source.text = text;
    source.entries.push_back({"rms", 0, 2, sizeof(Row), {1, 1, 1}, 0});
    source.entries.push_back({"look", EP_ENTRY_FLAG_FAULTS, 2, 0, {1, 1, 1}, 0});
    auto made = compile_module(device, source);
    ASSERT_TRUE(made.ok()) << made.status().message();
    module = std::move(made).value();
  }
  // Runs kernel `index` on `x`. The result is poisoned before.
  Result<std::vector<float>> run(uint32_t index, const std::vector<float>& x, uint64_t items,
                                 std::span<const std::byte> parameters) {
    const SegmentAddress buffers[] = {SegmentAddress::binding(0, 0), SegmentAddress::binding(1, 0)};
    const NodeName name{{"fused"}, vm::kNoInputs, {}, "node 3 (/norm)"};
    vm::SegmentBuilder builder(device, 2, nullptr);
    vm::SegmentKernelLaunch launch;
    launch.module = module;
    launch.kernel = index;
    launch.buffers = buffers;
    launch.parameters = parameters;
    launch.groups = {items, 1, 1};
    launch.name = &name;
    TENON_RETURN_IF_ERROR(builder.add(launch));
    const auto segment = builder.finish();
    const uint64_t bytes = x.size() * sizeof(float);
    TENON_ASSIGN_OR_RETURN(Storage * src, Storage::make_aligned(device, bytes));
    const StorageOwner keeps_src(src);
    TENON_ASSIGN_OR_RETURN(Storage * dst, Storage::make_aligned(device, bytes));
    const StorageOwner keeps_dst(dst);
    std::vector<float> y(x.size(), NAN);
    TENON_RETURN_IF_ERROR(vm::upload({src, 0, true, true}, x.data(), bytes, {}));
    TENON_RETURN_IF_ERROR(vm::upload({dst, 0, true, true}, y.data(), bytes, {}));
    const vm::Operand bindings[] = {{src, 0, false, false}, {dst, 0, true, true}};
    TENON_RETURN_IF_ERROR(vm::run({segment.get(), bindings, 0}));
    TENON_RETURN_IF_ERROR(vm::download(y.data(), {dst, 0, false, false}, bytes));
    return y;
  }

  DeviceState* device = nullptr;
  std::shared_ptr<CompiledModule> module;
};

TEST_F(CpuKernels, GiveWhatTheTextSays) {
  std::mt19937 generator(3);
  std::normal_distribution<float> number(0, 2);
  for (const auto& [rows, length] : {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {2000, 100}}) {
    std::vector<float> x(static_cast<size_t>(rows * length));
    for (float& one : x) one = number(generator);
    const Row row{length, 1e-6f};
    const auto y = run(0, x, static_cast<uint64_t>(rows), std::as_bytes(std::span(&row, 1)));
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

TEST_F(CpuKernels, ThatMeetBadDataNameTheirNode) {
  std::vector<float> x(100, 2);
  EXPECT_TRUE(run(1, x, x.size(), {}).ok());
  x[60] = -9;
  const auto y = run(1, x, x.size(), {});
  ASSERT_FALSE(y.ok());
  EXPECT_NE(y.status().message().find("node 3 (/norm)"), std::string::npos) << y.status().message();
  EXPECT_NE(y.status().message().find("-9"), std::string::npos) << y.status().message();
}

TEST_F(CpuKernels, AreKeptFromProcessToProcessByTheHost) {
  ModuleText source;
  source.name = "warned";
  source.text = fmt::format("#warning this text is compiled\n{}", text);
  source.entries.push_back({"rms", 0, 2, sizeof(Row), {1, 1, 1}, 0});
  std::string first, second;
  ASSERT_TRUE(compile_module(device, source, &first).ok());
  ASSERT_TRUE(compile_module(device, source, &second).ok());
  EXPECT_EQ(second, "") << "nothing was compiled";
}

}  // namespace
}  // namespace tenon::testing
