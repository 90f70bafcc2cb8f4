// The entry points of NVRTC that the compile helper calls. The host's C++ compiler compiles the text to a shared
// object, which the fake driver loads as machine code (modules.cpp).
#include <fmt/core.h>
#include <nvrtc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/unit/scratch_folder.h"

#define FAKE_API extern "C" __attribute__((visibility("default")))

struct _nvrtcProgram {
  std::string text;
  std::string name;
  std::string log;
  std::string code;
};

namespace {

// The built-in functions of CUDA that texts of tests use. The threads of a block run on one host thread, and each keeps
// its position in thread-local variables.
constexpr const char* front = R"(
#define __device__
#define __shared__ static thread_local
#define __global__ FAKE_GLOBAL
struct FakeDims { unsigned x, y, z; };
static thread_local FakeDims threadIdx, blockIdx, blockDim, gridDim;
static thread_local void (*fake_wait)();
struct alignas(16) float4 { float x, y, z, w; };
static inline float sqrtf(float x) { return __builtin_sqrtf(x); }
static inline float rsqrtf(float x) { return 1 / __builtin_sqrtf(x); }
static inline float __uint_as_float(unsigned bits) { float x; __builtin_memcpy(&x, &bits, sizeof x); return x; }
static inline float __int_as_float(int bits) { float x; __builtin_memcpy(&x, &bits, sizeof x); return x; }
static inline double __longlong_as_double(long long bits) { double x; __builtin_memcpy(&x, &bits, sizeof x); return x; }
static inline void __syncthreads() { fake_wait(); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline unsigned long long atomicMax(unsigned long long* at, unsigned long long value) {
  unsigned long long before = __atomic_load_n(at, __ATOMIC_SEQ_CST);
  while (before < value && !__atomic_compare_exchange_n(at, &before, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return before;
}
)";

// Calls functions of any type with pointers to their arguments.
constexpr const char* behind = R"(
#line 1 "fake"
#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))
struct FakeRun {
  template <class... A>
  FakeRun(void (*f)(A...), A... a) { f(a...); }
};
template <class... A>
static unsigned fake_count(void (*)(A...)) { return sizeof...(A); }
template <class... A>
static unsigned fake_size(void (*)(A...), unsigned i) { const unsigned sizes[] = {sizeof(A)..., 0}; return sizes[i]; }
template <class... A>
static void fake_call(void (*f)(A...), void* const* values) {
  unsigned i = 0;
  FakeRun{f, *static_cast<A*>(values[i++])...};
  (void)i;
}
FAKE_EXPORT void fake_place(const unsigned* at, void (*wait)()) {
  threadIdx = {at[0], at[1], at[2]};
  blockIdx = {at[3], at[4], at[5]};
  blockDim = {at[6], at[7], at[8]};
  gridDim = {at[9], at[10], at[11]};
  fake_wait = wait;
}
)";

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The names that follow FAKE_GLOBAL void in a preprocessed text.
std::vector<std::string> entries(const std::string& text) {
  std::vector<std::string> names;
  const std::string word = "FAKE_GLOBAL void ";
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t begin = at + word.size();
    names.push_back(text.substr(begin, text.find('(', begin) - begin));
  }
  return names;
}

// Runs the compiler. Returns false if it fails; its messages are then in `log`.
bool run(const std::string& folder, const std::string& options, std::string* log) {
  const std::string command = fmt::format("{} -std=c++17 {} >{}/log 2>&1", FAKE_NVRTC_COMPILER, options, folder);
  const bool done = std::system(command.c_str()) == 0;
  *log += contents(fmt::format("{}/log", folder));
  return done;
}

nvrtcResult compile_in(const std::string& folder, nvrtcProgram program) {
  std::ofstream(fmt::format("{}/text.cc", folder)) << front << program->text;
  if (!run(folder, fmt::format("-E {0}/text.cc -o {0}/whole.cc", folder), &program->log))
    return NVRTC_ERROR_COMPILATION;
  const std::string whole = contents(fmt::format("{}/whole.cc", folder));
  std::ofstream all(fmt::format("{}/whole.cc", folder), std::ios::app);
  all << behind;
  for (const std::string& name : entries(whole)) {
    all << fmt::format("FAKE_EXPORT unsigned fake_count_{0}() {{ return fake_count(&{0}); }}\n", name)
        << fmt::format("FAKE_EXPORT unsigned fake_size_{0}(unsigned i) {{ return fake_size(&{0}, i); }}\n", name)
        << fmt::format("FAKE_EXPORT void fake_call_{0}(void* const* values) {{ fake_call(&{0}, values); }}\n", name);
  }
  all.close();
  const std::string options = "-w -O1 -fPIC -shared -ffp-contract=off -fwrapv -fno-strict-aliasing -DFAKE_GLOBAL=";
  if (!run(folder, fmt::format("{0} {1}/whole.cc -o {1}/made.so", options, folder), &program->log)) {
    return NVRTC_ERROR_COMPILATION;
  }
  program->code = contents(fmt::format("{}/made.so", folder));
  return NVRTC_SUCCESS;
}

}  // namespace

FAKE_API nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}
FAKE_API const char* nvrtcGetErrorString(nvrtcResult) { return "a failure of the fake"; }
FAKE_API nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return NVRTC_SUCCESS;
}
FAKE_API nvrtcResult nvrtcGetSupportedArchs(int* all) {
  all[0] = 80;
  all[1] = 90;
  return NVRTC_SUCCESS;
}
FAKE_API nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* text, const char* name, int,
                                        const char* const*, const char* const*) {
  *program = new _nvrtcProgram{text, name, {}, {}};
  return NVRTC_SUCCESS;
}
FAKE_API nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}
FAKE_API nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int, const char* const*) {
  const tenon::ScratchFolder folder;
  return folder.path().empty() ? NVRTC_ERROR_OUT_OF_MEMORY : compile_in(folder.path(), program);
}
FAKE_API nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  *size = program->log.size() + 1;
  return NVRTC_SUCCESS;
}
FAKE_API nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}
FAKE_API nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size) {
  *size = program->code.size();
  return NVRTC_SUCCESS;
}
FAKE_API nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* code) {
  std::copy(program->code.begin(), program->code.end(), code);
  return NVRTC_SUCCESS;
}
FAKE_API nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* size) { return nvrtcGetCUBINSize(program, size); }
FAKE_API nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* code) { return nvrtcGetCUBIN(program, code); }
