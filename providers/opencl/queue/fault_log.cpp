#include "providers/opencl/queue/fault_log.h"

namespace tenon::provider::opencl {

FaultLog::~FaultLog() {
  for (const auto& reading : readings_) {
    if (reading->arrived != nullptr) context_->api.clReleaseEvent(reading->arrived);
  }
  if (slots_ != nullptr) context_->api.clReleaseMemObject(slots_);
}

ep_status FaultLog::watch(uint64_t tag, int32_t operand, int64_t limit, cl_mem* out_slots, uint32_t* out_slot,
                          ep_error** error) {
  std::lock_guard lock(mutex_);
  if (slots_ == nullptr) {
    cl_int result = CL_SUCCESS;
    slots_ = context_->api.clCreateBuffer(context_->handle(), CL_MEM_READ_WRITE, most_slots * sizeof(Slot), nullptr,
                                          &result);
    if (result != CL_SUCCESS) {
      slots_ = nullptr;
      return context_->failed(error, "clCreateBuffer", result);
    }
    if (const ep_status status = clear(most_slots, error); status != EP_STATUS_OK) return status;
  }
  if (open_.size() == most_slots) {
    if (const ep_status status = collect_locked(error); status != EP_STATUS_OK) return status;
  }
  *out_slots = slots_;
  *out_slot = static_cast<uint32_t>(open_.size());
  open_.push_back({tag, operand, limit});
  return EP_STATUS_OK;
}

ep_status FaultLog::clear(uint32_t slots, ep_error** error) {
  const cl_uint zero = 0;
  return context_->done(error, "clEnqueueFillBuffer",
                        context_->api.clEnqueueFillBuffer(queue_, slots_, &zero, sizeof zero, 0, slots * sizeof(Slot),
                                                          0, nullptr, nullptr));
}

ep_status FaultLog::collect(ep_error** error) {
  std::lock_guard lock(mutex_);
  return collect_locked(error);
}

ep_status FaultLog::collect_locked(ep_error** error) {
  if (open_.empty()) return EP_STATUS_OK;
  auto reading = std::make_unique<Reading>();
  reading->slots.resize(open_.size());
  const auto slots = static_cast<uint32_t>(open_.size());
  const cl_int result = context_->api.clEnqueueReadBuffer(queue_, slots_, CL_FALSE, 0, slots * sizeof(Slot),
                                                          reading->slots.data(), 0, nullptr, &reading->arrived);
  if (result != CL_SUCCESS) return context_->failed(error, "clEnqueueReadBuffer", result);
  reading->launches.swap(open_);
  readings_.push_back(std::move(reading));
  return clear(slots, error);
}

bool FaultLog::has_arrived(const Reading& reading) const {
  cl_int state = CL_QUEUED;
  context_->api.clGetEventInfo(reading.arrived, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr);
  if (state != CL_COMPLETE) return false;
  return context_->api.clWaitForEvents(1, &reading.arrived) == CL_SUCCESS;  // makes the device's writes visible
}

void FaultLog::keep_faults_of(const Reading& reading) {
  for (size_t i = 0; i < reading.slots.size(); ++i) {
    const Slot& slot = reading.slots[i];
    const Watched& launch = reading.launches[i];
    if (slot.taken == 0) continue;
    const bool own = launch.operand == of_kernel;
    faults_.push_back(
        {launch.tag, slot.code, own ? slot.operand : launch.operand, slot.value, own ? slot.limit : launch.limit, 0});
  }
}

bool FaultLog::take(ep_fault* out_fault) {
  std::lock_guard lock(mutex_);
  while (!readings_.empty() && has_arrived(*readings_.front())) {
    keep_faults_of(*readings_.front());
    context_->api.clReleaseEvent(readings_.front()->arrived);
    readings_.pop_front();
  }
  if (faults_.empty()) return false;
  *out_fault = faults_.front();
  faults_.pop_front();
  return true;
}

}  // namespace tenon::provider::opencl
