#include "providers/opencl/programs/program.h"

#include <algorithm>
#include <string_view>

#include "opencl_texts.h"
#include "providers/opencl/driver/result.h"

namespace tenon::provider::opencl {
namespace {

const char* text_of(const std::string& name) {
  for (const ProgramText& one : program_texts) {
    if (name == one.name) return one.text;
  }
  return "";
}

// The first lines of a compiler's log, joined to one line.
std::string first_lines(const std::string& log) {
  std::string lines;
  int count = 0;
  for (size_t at = 0; at < log.size() && count < 3;) {
    const size_t end = std::min(log.find('\n', at), log.size());
    const std::string_view line(log.data() + at, end - at);
    at = end + 1;
    if (line.empty()) continue;
    lines.append(count++ == 0 ? "" : " / ").append(line);
  }
  return lines.empty() ? "the compiler wrote no log" : lines;
}

}  // namespace

Kernel::~Kernel() { context_->api.clReleaseKernel(handle_); }

Program::~Program() { context_->api.clReleaseProgram(handle_); }

Refusal Program::kernel(const std::string& name, std::shared_ptr<Kernel>* out_kernel) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Kernel>& kernel = kernels_[name];
  if (kernel == nullptr) {
    cl_int result = CL_SUCCESS;
    cl_kernel handle = context_->api.clCreateKernel(handle_, name.c_str(), &result);
    if (result != CL_SUCCESS) {
      return Refusal::failure(status_of(result), "clCreateKernel(%s) answered %s (%d)", name.c_str(),
                              result_name(result), result);
    }
    kernel = std::make_shared<Kernel>(context_, handle);
  }
  *out_kernel = kernel;
  return {};
}

bool Program::in_use() const {
  std::lock_guard lock(mutex_);
  return std::any_of(kernels_.begin(), kernels_.end(), [](const auto& one) { return one.second.use_count() > 1; });
}

Refusal Programs::get(const std::string& text, const std::string& options, const std::string& name,
                      std::shared_ptr<Kernel>* out_kernel) {
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard lock(mutex_);
    std::shared_ptr<Slot>& found = slots_[{text, options}];
    if (found == nullptr) found = std::make_shared<Slot>();
    slot = found;
  }
  std::lock_guard lock(slot->mutex);
  if (slot->program == nullptr) {
    if (Refusal refusal = compile(text, options, &slot->program)) return refusal;
  }
  return slot->program->kernel(name, out_kernel);
}

Refusal Programs::compile(const std::string& text, const std::string& options, std::shared_ptr<Program>* out_program) {
  const Api& api = context_->api;
  if (wants_to_stop(context_->host)) {
    return Refusal::failure(EP_STATUS_CANCELLED, "the host asked to stop before the driver compiled");
  }
  const char* data = text_of(text);
  cl_int result = CL_SUCCESS;
  cl_program handle = api.clCreateProgramWithSource(context_->handle(), 1, &data, nullptr, &result);
  if (result != CL_SUCCESS) {
    return Refusal::failure(status_of(result), "clCreateProgramWithSource answered %s (%d)", result_name(result),
                            result);
  }
  auto program = std::make_shared<Program>(context_, handle);
  const std::string all = options + this->options();
  result = api.clBuildProgram(handle, 1, &context_->physical.handle, all.c_str(), nullptr, nullptr);
  if (result != CL_SUCCESS) {
    return Refusal::failure(status_of(result), "%s.cl does not compile (%s): %s", text.c_str(), result_name(result),
                            first_lines(log_of(handle)).c_str());
  }
  *out_program = std::move(program);
  return {};
}

std::string Programs::options() const {
  std::string all;
  if (context_->physical.exact_division) all += " -cl-fp32-correctly-rounded-divide-sqrt";
  if (context_->physical.f64) all += " -DEP_HAS_FLOAT64";
  if (!build_options_.empty()) all.append(" ").append(build_options_);
  return all;
}

std::string Programs::log_of(cl_program program) const {
  const Api& api = context_->api;
  size_t size = 0;
  if (api.clGetProgramBuildInfo(program, context_->physical.handle, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) !=
      CL_SUCCESS) {
    return {};
  }
  std::string log(size, '\0');
  api.clGetProgramBuildInfo(program, context_->physical.handle, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  log.resize(std::min(log.find('\0'), log.size()));
  return log;
}

void Programs::trim() {
  std::lock_guard lock(mutex_);
  std::erase_if(slots_, [](const auto& one) {
    const std::unique_lock lock(one.second->mutex, std::try_to_lock);  // locked by a thread that compiles
    return lock.owns_lock() && one.second.use_count() == 1 &&
           (one.second->program == nullptr || !one.second->program->in_use());
  });
}

}  // namespace tenon::provider::opencl
