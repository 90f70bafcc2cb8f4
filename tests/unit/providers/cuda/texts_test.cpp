// Texts in CUDA C, compiled by NVRTC for two architectures. No GPU is needed, and nothing is launched.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "primitives/text/format.h"
#include "providers/cuda/modules/nvrtc_compiler.h"
#include "providers/cuda/modules/source.h"
#include "sdk/conformance/contract/module_texts.h"
#include "tests/unit/providers/module_fixture.h"

namespace tenon::provider {
namespace {

constexpr Elf64_Half cuda_machine = 190;

class CudaTexts : public ::testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("PROVIDERS_FOLDER");
    host.path = fmt::format("{}/libtenon_cuda.so", folder != nullptr ? folder : ".");
    compiler = std::make_unique<cuda::NvrtcCompiler>(host.table(), GetParam());
    const std::string& why = compiler->toolchain().sentence;
    if (!why.empty()) GTEST_SKIP() << why;
  }
  CompileResult compile(const std::string& text) {
    ep_module_constant constants[] = {{text_of("HALF"), {EP_DTYPE_f32, 0, {}}},
                                      {text_of("THIRD"), {EP_DTYPE_f64, 0, {}}},
                                      {text_of("MOST"), {EP_DTYPE_i64, 0, {}}}};
    constants[0].value.value.f64 = 0.5;
    constants[1].value.value.f64 = 1.0 / 3;
    constants[2].value.value.i64 = INT64_MAX;
    ep_module_desc desc{};
    desc.dialect = EP_DIALECT_CUDA_C;
    desc.constants = constants;
    desc.constant_count = 3;
    desc.text = provider::text_of(text);
    return compiler->compile(cuda::source_of(desc));
  }
  static ep_string text_of(const char* name) { return {name, std::strlen(name)}; }

  TestHost host;
  std::unique_ptr<cuda::NvrtcCompiler> compiler;
};
INSTANTIATE_TEST_SUITE_P(For, CudaTexts, ::testing::Values(80, 90));

TEST_P(CudaTexts, OfTheKitBecomeMachineCode) {
  const conformance::DialectRow* row = conformance::dialect_row(EP_DIALECT_CUDA_C);
  ASSERT_NE(row, nullptr);
  std::vector<size_t> kernels(std::size(conformance::kKernels));
  for (size_t i = 0; i < kernels.size(); ++i) kernels[i] = i;
  const CompileResult made = compile(conformance::text_of(*row, kernels));
  ASSERT_EQ(made.status, EP_STATUS_OK) << made.sentence << "\n" << made.output;
  Elf64_Ehdr head{};
  ASSERT_GT(made.binary.size(), sizeof head);
  std::memcpy(&head, made.binary.data(), sizeof head);
  EXPECT_EQ(std::memcmp(head.e_ident, ELFMAG, SELFMAG), 0);
  EXPECT_EQ(head.e_machine, cuda_machine);
  for (const conformance::KernelRow& kernel : conformance::kKernels) {
    EXPECT_NE(made.binary.find(fmt::format(".text.{}", kernel.name)), std::string::npos) << kernel.name;
  }
}

TEST_P(CudaTexts, ThatNvrtcRefusesComeBackWithTheLine) {
  const CompileResult made = compile("// one\n// two\nextern \"C\" __global__ void f() { missing = 1; }\n");
  EXPECT_EQ(made.status, EP_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(made.sentence.find("line 3: error: identifier \"missing\""), 0u) << made.sentence;
}

// Floats that have no literal, and the least integer.
TEST_P(CudaTexts, KnowConstantsOfEveryKind) {
  ep_module_constant constants[] = {{text_of("A"), {EP_DTYPE_f32, 0, {}}},
                                    {text_of("B"), {EP_DTYPE_f64, 0, {}}},
                                    {text_of("C"), {EP_DTYPE_i64, 0, {}}},
                                    {text_of("D"), {EP_DTYPE_u64, 0, {}}}};
  constants[0].value.value.f64 = -std::numeric_limits<double>::infinity();
  constants[1].value.value.f64 = std::numeric_limits<double>::quiet_NaN();
  constants[2].value.value.i64 = INT64_MIN;
  constants[3].value.value.u64 = UINT64_MAX;
  ep_module_desc desc{};
  desc.dialect = EP_DIALECT_CUDA_C;
  desc.constants = constants;
  desc.constant_count = 4;
  const std::string text = "extern \"C\" __global__ void f(double* y) { y[0] = A; y[1] = B; y[2] = C; y[3] = D; }\n";
  desc.text = provider::text_of(text);
  const CompileResult made = compiler->compile(cuda::source_of(desc));
  EXPECT_EQ(made.status, EP_STATUS_OK) << made.sentence << "\n" << made.output;
}

}  // namespace
}  // namespace tenon::provider
