#include "tests/unit/codegen/groups.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "core/codegen/emit/emit.h"
#include "core/codegen/loop/interpret.h"
#include "core/codegen/tactics/tactics.h"
#include "ep_api/ep_api.h"
#include "primitives/text/format.h"
#include "tests/unit/codegen/compiled.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::codegen {
namespace {

constexpr uint64_t kAllFeatures = ~uint64_t{0};

template <class Function>
Function* symbol(void* library, const char* name, Function*) {
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}
#define CL_FUNCTION(name) symbol(library_, #name, static_cast<decltype(::name)*>(nullptr))

// The first device that OpenCL finds.
class OpenCl {
 public:
  static OpenCl& get() {
    static OpenCl one;
    return one;
  }
  bool ok() const { return queue_ != nullptr; }

  cl_kernel compile(const KernelText& text) {
    const std::string whole =
        "#pragma OPENCL FP_CONTRACT OFF\n"
        "typedef char int8_t; typedef uchar uint8_t; typedef short int16_t; typedef ushort uint16_t; typedef int "
        "int32_t;\n"
        "typedef uint uint32_t; typedef long int64_t; typedef ulong uint64_t;\n#line 1 \"kernel\"\n" +
        text.text;
    const char* source = whole.c_str();
    cl_int code = 0;
    const cl_program program = CL_FUNCTION(clCreateProgramWithSource)(context_, 1, &source, nullptr, &code);
    if (CL_FUNCTION(clBuildProgram)(program, 1, &device_, "-cl-std=CL1.2", nullptr, nullptr) != CL_SUCCESS) {
      std::string log(20000, ' ');
      CL_FUNCTION(clGetProgramBuildInfo)(program, device_, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
      ADD_FAILURE() << log.substr(0, log.find('\0')) << "\n" << text.text.substr(text.text.find("__kernel"));
      return nullptr;
    }
    const cl_kernel kernel = CL_FUNCTION(clCreateKernel)(program, text.entry.c_str(), &code);
    EXPECT_EQ(code, CL_SUCCESS);
    return kernel;
  }

  // Two rows of groups, so that the text must combine the two indices.
  void run(cl_kernel kernel, const KernelText& text, Memory* memory, size_t buffers,
           const std::vector<int64_t>& parameters, int64_t items) {
    if (items == 0) return;
    std::vector<cl_mem> made;
    for (size_t i = 0; i < buffers; ++i) {
      const size_t bytes = std::max<size_t>(memory->bytes(i).size(), 1);
      std::vector<unsigned char> copy = memory->bytes(i);
      copy.resize(bytes);
      cl_int code = 0;
      made.push_back(
          CL_FUNCTION(clCreateBuffer)(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, copy.data(), &code));
      ASSERT_EQ(code, CL_SUCCESS);
      ASSERT_EQ(CL_FUNCTION(clSetKernelArg)(kernel, static_cast<cl_uint>(i), sizeof(cl_mem), &made.back()), CL_SUCCESS);
    }
    if (!parameters.empty()) {
      ASSERT_EQ(
          CL_FUNCTION(clSetKernelArg)(kernel, static_cast<cl_uint>(buffers), 8 * parameters.size(), parameters.data()),
          CL_SUCCESS);
    }
    const size_t local[2] = {text.group[0], text.group[1]};
    const size_t global[2] = {local[0] * static_cast<size_t>((items + 1) / 2), local[1] * 2};
    ASSERT_EQ(CL_FUNCTION(clEnqueueNDRangeKernel)(queue_, kernel, 2, nullptr, global, local, 0, nullptr, nullptr),
              CL_SUCCESS);
    const std::vector<void*> addresses = memory->addresses();
    for (size_t i = 0; i < buffers; ++i) {
      if (memory->bytes(i).empty()) continue;
      ASSERT_EQ(CL_FUNCTION(clEnqueueReadBuffer)(queue_, made[i], CL_TRUE, 0, memory->bytes(i).size(), addresses[i], 0,
                                                 nullptr, nullptr),
                CL_SUCCESS);
    }
    for (const cl_mem each : made) CL_FUNCTION(clReleaseMemObject)(each);
  }

 private:
  OpenCl() {
    // The script asks in another process, because PoCL ends a process that cannot read /sys.
    if (library_ == nullptr || std::system(TENON_ON_DEVICE " opencl true") != 0) return;
    cl_platform_id platform = nullptr;
    if (CL_FUNCTION(clGetPlatformIDs)(1, &platform, nullptr) != CL_SUCCESS) return;
    if (CL_FUNCTION(clGetDeviceIDs)(platform, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr) != CL_SUCCESS) return;
    context_ = CL_FUNCTION(clCreateContext)(nullptr, 1, &device_, nullptr, nullptr, nullptr);
    if (context_ != nullptr) queue_ = CL_FUNCTION(clCreateCommandQueue)(context_, device_, 0, nullptr);
  }

  void* library_ = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
};

// NVRTC, which needs no GPU.
class Nvrtc {
 public:
  static Nvrtc& get() {
    static Nvrtc one;
    return one;
  }
  bool ok() const { return library_ != nullptr; }

  // Returns the compiler's message about `text`; empty: it compiles.
  std::string refusal(const KernelText& text, const char* architecture) {
    std::string ptx;
    return compile(text, architecture, &ptx);
  }
  std::string ptx(const KernelText& text, const char* architecture) {
    std::string made;
    EXPECT_EQ(compile(text, architecture, &made), "");
    return made;
  }

 private:
  std::string compile(const KernelText& text, const char* architecture, std::string* out_ptx) {
    using Program = void*;
    const auto create = symbol(
        library_, "nvrtcCreateProgram",
        static_cast<int (*)(Program*, const char*, const char*, int, const char* const*, const char* const*)>(nullptr));
    const auto make =
        symbol(library_, "nvrtcCompileProgram", static_cast<int (*)(Program, int, const char* const*)>(nullptr));
    const auto destroy = symbol(library_, "nvrtcDestroyProgram", static_cast<int (*)(Program*)>(nullptr));
    const std::string whole =
        "typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t; typedef unsigned short "
        "uint16_t;\n"
        "typedef int int32_t; typedef unsigned int uint32_t; typedef long long int64_t;\n"
        "typedef unsigned long long uint64_t;\n#line 1 \"kernel\"\n" +
        text.text;
    Program program = nullptr;
    if (create(&program, whole.c_str(), "kernel", 0, nullptr, nullptr) != 0) return "nvrtcCreateProgram fails";
    const std::string target = fmt::format("--gpu-architecture={}", architecture);
    const char* options[] = {target.c_str(), "--fmad=false", "--std=c++17"};
    const int code = make(program, 3, options);
    const std::string log = answer(program, "nvrtcGetProgramLog");
    if (code == 0) *out_ptx = answer(program, "nvrtcGetPTX");
    destroy(&program);
    return code == 0 ? "" : log.substr(0, 4000);
  }
  // Calls a function and its sister with the suffix "Size", and returns the text.
  std::string answer(void* program, const std::string& name) {
    const auto size_of = symbol(library_, (name + "Size").c_str(), static_cast<int (*)(void*, size_t*)>(nullptr));
    const auto get = symbol(library_, name.c_str(), static_cast<int (*)(void*, char*)>(nullptr));
    size_t size = 0;
    if (size_of == nullptr || get == nullptr || size_of(program, &size) != 0) return {};
    std::string text(size, ' ');
    if (size > 0) get(program, text.data());
    return text;
  }

  Nvrtc() {
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"}) {
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
  }
  void* library_ = nullptr;
};

bool has_glslang() {
  static const bool found = std::system("glslangValidator --version > /dev/null 2>&1") == 0;
  return found;
}

// Returns glslang's message about `text`; empty: it compiles.
std::string refusal_of_glslang(const KernelText& text) {
  const ScratchFolder folder;
  const std::string base = fmt::format("{}/kernel", folder.path());
  std::string whole = fmt::format(
      "#version 460\n#extension GL_EXT_buffer_reference2 : require\n#extension GL_EXT_scalar_block_layout : require\n"
      "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
      "#extension GL_EXT_control_flow_attributes : require\n"
      "layout(local_size_x = {}, local_size_y = {}) in;\n{}void main() {{ {}(); }}\n",
      text.group[0], text.group[1], text.text, text.entry);
  const std::string place = "EP_PARAMETERS\n";
  EXPECT_NE(whole.find(place), std::string::npos);
  whole.replace(whole.find(place), place.size(),
                fmt::format("layout(push_constant, scalar) uniform Block {{ uint64_t ep_buffers[{}];{} }};\n",
                            text.buffer_count, text.parameter_bytes == 0 ? "" : " Parameters ep_parameters;"));
  std::ofstream(base + ".comp") << whole;
  const std::string command =
      fmt::format("glslangValidator -V --target-env vulkan1.2 -o {0}.spv {0}.comp > {0}.txt 2>&1", base);
  if (std::system(command.c_str()) == 0) return "";
  std::ifstream messages(base + ".txt");
  return std::string(std::istreambuf_iterator<char>(messages), {}).substr(0, 4000) + "\n" +
         text.text.substr(text.text.find(place));
}

}  // namespace

std::string missing_compilers() {
  std::string missing;
  if (!OpenCl::get().ok()) missing += "OpenCL finds no device. ";
  if (!has_glslang()) missing += "glslangValidator is not found. ";
  if (!Nvrtc::get().ok()) missing += "NVRTC is not found. ";
  return missing;
}

void expect_dialects(const Kernel& kernel, const std::vector<std::vector<int64_t>>& parameters, double ulps,
                     double absolute, IndexBits bits) {
  const Result<KernelText> opencl = emit_groups(kernel, EP_DIALECT_OPENCL_C, kAllFeatures, bits);
  ASSERT_TRUE(opencl.ok()) << opencl.status().message() << "\n" << to_string(kernel);
  const cl_kernel compiled = OpenCl::get().ok() ? OpenCl::get().compile(opencl.value()) : nullptr;
  for (const std::vector<int64_t>& sizes : parameters) {
    if (compiled == nullptr) break;
    std::string what = kernel.name;
    for (const int64_t size : sizes) what += fmt::format(" {}", size);
    Memory expected(kernel, sizes, 7);
    Memory actual(kernel, sizes, 7);
    const Status status = interpret(kernel, sizes, expected.addresses());
    ASSERT_TRUE(status.ok()) << what << ": " << status.message();
    OpenCl::get().run(compiled, opencl.value(), &actual, kernel.buffers.size(), sizes,
                      value_or_throw(item_count(kernel, sizes)));
    expect_near(kernel, expected, actual, ulps, absolute, what + " in OpenCL C");
    if (testing::Test::HasFatalFailure()) {
      FAIL() << to_string(kernel) << opencl.value().text.substr(opencl.value().text.find("__kernel"));
    }
  }
  const Result<KernelText> cuda = emit_groups(kernel, EP_DIALECT_CUDA_C, kAllFeatures, bits);
  ASSERT_TRUE(cuda.ok()) << cuda.status().message();
  if (Nvrtc::get().ok()) {
    static int number = 0;
    EXPECT_EQ(Nvrtc::get().refusal(cuda.value(), ++number % 2 == 0 ? "sm_80" : "sm_90"), "")
        << cuda.value().text.substr(cuda.value().text.find("extern"));
  }
  const Result<KernelText> glsl = emit_groups(kernel, EP_DIALECT_GLSL, kAllFeatures, bits);
  if (!glsl.ok()) {
    EXPECT_EQ(glsl.status().message(), "The prelude in GLSL has no f64.");
  } else if (has_glslang()) {
    EXPECT_EQ(refusal_of_glslang(glsl.value()), "");
  }
}

namespace {

// Schedules `plain` for groups, and interprets it before and after.
Kernel expect_loops(const Kernel& plain, const std::vector<std::vector<int64_t>>& parameters, const GroupLimits& limits,
                    double absolute) {
  Kernel kernel = plain;
  const Status status = schedule_for_groups(&kernel, limits);
  EXPECT_TRUE(status.ok()) << status.message() << "\n" << to_string(kernel);
  if (!status.ok()) return kernel;
  const std::string scheduled = to_string(kernel);
  EXPECT_EQ(to_string(parsed(scheduled)), scheduled);
  for (const std::vector<int64_t>& sizes : parameters) {
    Memory expected(plain, sizes, 7);
    Memory actual(plain, sizes, 7);
    const Status before = interpret(plain, sizes, expected.addresses());
    EXPECT_TRUE(before.ok()) << before.message();
    const Status after = interpret(kernel, sizes, actual.addresses());
    EXPECT_TRUE(after.ok()) << after.message() << "\n" << scheduled;
    expect_near(plain, expected, actual, 1, absolute, "interpreted in groups " + plain.name);
  }
  return kernel;
}

}  // namespace

std::string expect_groups(const Kernel& plain, const std::vector<std::vector<int64_t>>& parameters, double ulps,
                          double absolute) {
  const Kernel kernel = expect_loops(plain, parameters, {}, absolute);
  if (!kernel.scheduled()) return {};
  expect_dialects(kernel, parameters, ulps, absolute);
  const Kernel packed = expect_loops(plain, parameters, {.vector_bytes = 16}, absolute);
  if (to_string(packed) != to_string(kernel)) {
    expect_dialects(packed, parameters, ulps, absolute, IndexBits::narrow);
  }
  if (testing::Test::HasFailure()) ADD_FAILURE() << to_string(kernel) << to_string(packed);
  const std::string scheduled = to_string(kernel);
  return scheduled.substr(scheduled.find("loops\n"));
}

// The PTX that NVRTC makes of `text`, for tests that look for an instruction; empty: NVRTC is not installed.
std::string ptx_of(const KernelText& text) {
  return Nvrtc::get().ok() ? Nvrtc::get().ptx(text, "compute_90") : std::string();
}

}  // namespace tenon::codegen
