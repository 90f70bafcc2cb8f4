// The engine that loads NVRTC.
#include <fmt/core.h>
#include <nvrtc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "providers/cuda/driver/library.h"
#include "sdk/provider/modules/helper/engine.h"

namespace tenon::provider::helper {
namespace {

// The first two are found by the system's loader; the others are where the toolkit's installer puts them.
constexpr std::array library_names = {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so",
                                      "/usr/local/cuda/lib/libnvrtc.so"};

#define TENON_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion)                \
  X(nvrtcGetErrorString)         \
  X(nvrtcGetNumSupportedArchs)   \
  X(nvrtcGetSupportedArchs)      \
  X(nvrtcCreateProgram)          \
  X(nvrtcDestroyProgram)         \
  X(nvrtcCompileProgram)         \
  X(nvrtcGetProgramLogSize)      \
  X(nvrtcGetProgramLog)          \
  X(nvrtcGetCUBINSize)           \
  X(nvrtcGetCUBIN)               \
  X(nvrtcGetPTXSize)             \
  X(nvrtcGetPTX)

struct Nvrtc {
#define TENON_NVRTC_MEMBER(name) decltype(&::name) name = nullptr;
  TENON_NVRTC_FUNCTIONS(TENON_NVRTC_MEMBER)
#undef TENON_NVRTC_MEMBER
};
Nvrtc nvrtc;
std::vector<int> architectures;  // architectures that this NVRTC supports, ascending

Outcome failed(std::string sentence) { return {Result::failed, std::move(sentence), {}}; }

struct Program {
  nvrtcProgram handle = nullptr;
  Program() = default;
  ~Program() {
    if (handle != nullptr) nvrtc.nvrtcDestroyProgram(&handle);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
};

std::string log_of(nvrtcProgram program) {
  size_t size = 0;
  if (nvrtc.nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS || size <= 1) return {};
  std::string log(size, '\0');
  if (nvrtc.nvrtcGetProgramLog(program, log.data()) != NVRTC_SUCCESS) return {};
  log.resize(std::min({log.find('\0'), size, static_cast<size_t>(most_output_bytes)}));
  return log;
}

// Machine code if NVRTC supports the device, else intermediate code.
nvrtcResult code_of(nvrtcProgram program, bool machine, std::vector<char>* code) {
  size_t size = 0;
  nvrtcResult result = machine ? nvrtc.nvrtcGetCUBINSize(program, &size) : nvrtc.nvrtcGetPTXSize(program, &size);
  if (result != NVRTC_SUCCESS) return result;
  code->resize(size);
  return machine ? nvrtc.nvrtcGetCUBIN(program, code->data()) : nvrtc.nvrtcGetPTX(program, code->data());
}

}  // namespace

Outcome identify(const std::string& chosen) {
  const std::array<const char*, 1> one = {chosen.c_str()};
  const cuda::Library library = chosen.empty() ? cuda::Library::open(library_names) : cuda::Library::open(one);
  if (!library.loaded()) return failed(fmt::format("There is no NVRTC here: {}.", library.failure()));
#define TENON_NVRTC_LOAD(function)                                                        \
  nvrtc.function = reinterpret_cast<decltype(nvrtc.function)>(library.symbol(#function)); \
  if (nvrtc.function == nullptr) return failed(fmt::format("{} has no function {}.", library.name(), #function));
  TENON_NVRTC_FUNCTIONS(TENON_NVRTC_LOAD)
#undef TENON_NVRTC_LOAD
  int major = 0, minor = 0, count = 0;
  nvrtcResult result = nvrtc.nvrtcVersion(&major, &minor);
  if (result == NVRTC_SUCCESS) result = nvrtc.nvrtcGetNumSupportedArchs(&count);
  architectures.resize(static_cast<size_t>(std::max(count, 0)));
  if (result == NVRTC_SUCCESS) result = nvrtc.nvrtcGetSupportedArchs(architectures.data());
  if (result != NVRTC_SUCCESS || architectures.empty()) {
    return failed(fmt::format("{} does not work: {}.", library.name(), nvrtc.nvrtcGetErrorString(result)));
  }
  std::sort(architectures.begin(), architectures.end());
  return {Result::done, fmt::format("NVRTC {}.{}\n{}", major, minor, library.name()), {}};
}

// Question::target is the compute capability.
Outcome compile(const std::string& text, const Question& question) {
  const auto capability = static_cast<int>(question.target);
  const auto above = std::upper_bound(architectures.begin(), architectures.end(), capability);
  if (above == architectures.begin()) {
    return failed(fmt::format("This NVRTC compiles for compute capability {}.{} or higher; the device has {}.{}.",
                              architectures[0] / 10, architectures[0] % 10, capability / 10, capability % 10));
  }
  const int architecture = *(above - 1);
  const bool machine = architecture == capability;
  const std::string target = fmt::format("--gpu-architecture={}_{}", machine ? "sm" : "compute", architecture);
  const char* const options[] = {target.c_str(), "--std=c++17",     "--fmad=false",
                                 "--ftz=false",  "--prec-div=true", "--prec-sqrt=true"};
  Program program;
  nvrtcResult result = nvrtc.nvrtcCreateProgram(&program.handle, text.c_str(), "kernel", 0, nullptr, nullptr);
  if (result != NVRTC_SUCCESS) return failed(fmt::format("NVRTC fails: {}.", nvrtc.nvrtcGetErrorString(result)));
  result = nvrtc.nvrtcCompileProgram(program.handle, static_cast<int>(std::size(options)), options);
  std::string said = log_of(program.handle);
  if (result == NVRTC_ERROR_COMPILATION) return {Result::refused, std::move(said), {}};
  std::vector<char> code;
  if (result == NVRTC_SUCCESS) result = code_of(program.handle, machine, &code);
  if (result != NVRTC_SUCCESS) return failed(fmt::format("NVRTC fails: {}.", nvrtc.nvrtcGetErrorString(result)));
  return {Result::done, std::move(said), std::move(code)};
}

}  // namespace tenon::provider::helper
