// The engine that compiles with an OpenCL driver: the plug-in's driver and device, in another process.
//
// A processor's driver compiles again when a kernel is launched, for the size of its group. So the helper launches one
// group of each entry on memory that it reserves for this: the driver keeps the code, and a crash ends only the helper,
// not the program. The memory holds zeros, as far as any kernel reads.
#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "providers/opencl/driver/describe.h"
#include "providers/opencl/driver/result.h"
#include "providers/opencl/modules/question.h"
#include "sdk/provider/modules/helper/engine.h"

namespace tenon::provider::helper {
namespace {

using namespace opencl;

constexpr uint64_t laid_out = uint64_t{64} << 30;  // bytes of addresses per buffer; pages are allocated when written
constexpr uint64_t declared = uint64_t{1} << 20;   // bytes of it that the driver sees as the buffer

struct Driver {
  Api api;
  PhysicalDevice device;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
};

Driver& driver() {
  static auto* one = new Driver;  // drivers have threads that outlive main
  return *one;
}

Outcome failed(const char* call, cl_int result) {
  return {
      Result::failed, fmt::format("{} answered {} ({}) in the compile helper.", call, result_name(result), result), {}};
}

std::string log_of(cl_program program) {
  const Driver& own = driver();
  size_t size = 0;
  own.api.clGetProgramBuildInfo(program, own.device.handle, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  own.api.clGetProgramBuildInfo(program, own.device.handle, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  log.resize(std::min({log.find('\0'), log.size(), size_t{most_output_bytes}}));
  return log;
}

// A zero-filled buffer, larger than any kernel reads; null if the addresses are not available.
class Zeros {
 public:
  Zeros() {
    void* at = mmap(nullptr, laid_out, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return;
    at_ = at;
    cl_int made = CL_SUCCESS;
    buffer_ =
        driver().api.clCreateBuffer(driver().context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, declared, at, &made);
    if (made != CL_SUCCESS) buffer_ = nullptr;
  }
  ~Zeros() {
    if (buffer_ != nullptr) driver().api.clReleaseMemObject(buffer_);
    if (at_ != nullptr) munmap(at_, laid_out);
  }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  const cl_mem& get() const { return buffer_; }

 private:
  void* at_ = nullptr;
  cl_mem buffer_ = nullptr;
};

// Launches one group of `entry`, so that the driver compiles its code. Failures are ignored; the program will report
// them.
void rehearse(cl_program program, const AskedEntry& entry) {
  const Api& api = driver().api;
  cl_int result = CL_SUCCESS;
  cl_kernel kernel = api.clCreateKernel(program, entry.name.c_str(), &result);
  if (result != CL_SUCCESS) return;
  std::vector<std::unique_ptr<Zeros>> buffers;
  cl_uint count = 0;
  const auto set_buffer = [&] {
    buffers.push_back(std::make_unique<Zeros>());
    if (buffers.back()->get() == nullptr) result = CL_OUT_OF_HOST_MEMORY;
    if (result == CL_SUCCESS) result = api.clSetKernelArg(kernel, count++, sizeof(cl_mem), &buffers.back()->get());
  };
  const auto set_zeros = [&](uint64_t bytes) {
    const std::vector<char> zeros(bytes);
    if (result == CL_SUCCESS) result = api.clSetKernelArg(kernel, count++, bytes, zeros.data());
  };
  for (uint32_t i = 0; i < entry.buffers && result == CL_SUCCESS; ++i) set_buffer();
  if (entry.parameter_bytes != 0 && entry.by_reference) set_buffer();
  if (entry.parameter_bytes != 0 && !entry.by_reference) set_zeros(entry.parameter_bytes);
  if (entry.faults) set_buffer();
  set_zeros(entry.words);
  const size_t group[3] = {entry.group[0], entry.group[1], entry.group[2]};
  if (result == CL_SUCCESS) {
    api.clEnqueueNDRangeKernel(driver().queue, kernel, 3, nullptr, group, group, 0, nullptr, nullptr);
    api.clFinish(driver().queue);
  }
  api.clReleaseKernel(kernel);
}

std::vector<char> binary_of(cl_program program) {
  size_t bytes = 0;
  const Api& api = driver().api;
  if (api.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) return {};
  std::vector<char> binary(bytes);
  char* data = binary.data();
  if (bytes == 0 || api.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, nullptr) != CL_SUCCESS) {
    return {};
  }
  return binary;
}

Outcome build(cl_program program, const Asked& asked) {
  const Driver& own = driver();
  const cl_int result = own.api.clBuildProgram(program, 1, &own.device.handle, asked.options.c_str(), nullptr, nullptr);
  std::string log = log_of(program);
  // If the text is wrong, a compiler's log contains "error" and a position; if the disk is full, it does not.
  if (result == CL_BUILD_PROGRAM_FAILURE && log.find("error") != std::string::npos) return {Result::refused, log, {}};
  if (result == CL_BUILD_PROGRAM_FAILURE) {
    return {Result::failed,
            fmt::format("The compiler failed without reporting an error in the text: {}", log.substr(0, 256)),
            {}};
  }
  if (result != CL_SUCCESS) return failed("clBuildProgram", result);
  if ((own.device.type & CL_DEVICE_TYPE_CPU) != 0) {
    for (const AskedEntry& entry : asked.entries) rehearse(program, entry);
  }
  std::vector<char> binary = binary_of(program);
  if (binary.empty()) return {Result::failed, "The driver returns no binary of the compiled text.", {}};
  return {Result::done, std::move(log), std::move(binary)};
}

}  // namespace

// `chosen`: the number of the device, the ICD loader and the device's fingerprint, one per line.
Outcome identify(const std::string& chosen) {
  Driver& own = driver();
  const size_t first = std::min(chosen.find('\n'), chosen.size());
  const size_t second = std::min(chosen.find('\n', first + 1), chosen.size());
  if (second == chosen.size()) return {Result::failed, "The compile helper was given no device.", {}};
  if (const std::string why = own.api.open(chosen.substr(first + 1, second - first - 1)); !why.empty()) {
    return {Result::failed, why, {}};
  }
  std::vector<PhysicalDevice> devices;
  cl_int result = find_devices(own.api, &devices);
  const size_t number = std::strtoul(chosen.c_str(), nullptr, 10);
  if (result != CL_SUCCESS) return failed("clGetPlatformIDs", result);
  if (number >= devices.size() || devices[number].fingerprint != chosen.substr(second + 1)) {
    return {Result::failed, "The compile helper finds other OpenCL devices than the program.", {}};
  }
  own.device = devices[number];
  own.context = own.api.clCreateContext(nullptr, 1, &own.device.handle, nullptr, nullptr, &result);
  if (result != CL_SUCCESS) return failed("clCreateContext", result);
  own.queue = own.api.clCreateCommandQueue(own.context, own.device.handle, 0, &result);
  if (result != CL_SUCCESS) return failed("clCreateCommandQueue", result);
  return {Result::done, fmt::format("{}\n{}", own.device.compiler, own.device.fingerprint), {}};
}

Outcome compile(const std::string& text, const Question&) {
  Asked asked;
  if (!read(text, &asked)) return {Result::failed, "The compile helper cannot read the request.", {}};
  const char* source = asked.source.c_str();
  cl_int result = CL_SUCCESS;
  cl_program program = driver().api.clCreateProgramWithSource(driver().context, 1, &source, nullptr, &result);
  if (result != CL_SUCCESS) return failed("clCreateProgramWithSource", result);
  Outcome outcome = build(program, asked);
  driver().api.clReleaseProgram(program);
  return outcome;
}

}  // namespace tenon::provider::helper
