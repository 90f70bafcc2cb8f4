// Launches of compiled kernels.
#include "providers/cuda/modules/modules.h"
#include "providers/cuda/modules/source.h"

namespace tenon::provider::cuda {
namespace {

ep_status launch_now(const ep_kernel& kernel, ep_stream* stream, const ep_kernel_launch& launch, ep_error** error) {
  ep_device* device = stream->device;
  CUdeviceptr addresses[most_module_buffers];
  void* arguments[most_module_buffers + 2];
  uint32_t count = 0;
  const auto add = [&](ep_buffer buffer) {
    addresses[count] = address_of(buffer);
    arguments[count] = &addresses[count];
    ++count;
  };
  for (uint32_t i = 0; i < kernel.buffer_count; ++i) add(launch.buffers[i]);
  if ((kernel.flags & EP_ENTRY_FLAG_WORKSPACE) != 0) add(launch.workspace);
  if ((kernel.flags & EP_ENTRY_FLAG_SCRATCH) != 0) add(launch.scratch);
  // The driver copies the arguments during the call.
  if (launch.parameter_bytes != 0) arguments[count++] = const_cast<void*>(launch.parameters);
  const bool faults = (kernel.flags & EP_ENTRY_FLAG_FAULTS) != 0;
  FaultTarget fault{};
  if (faults) {
    const CUresult room = stream->faults->make_room(*device->driver, stream->handle);
    if (room != CUDA_SUCCESS) return driver_failed(device, room, "allocating memory for faults", error);
    fault = stream->faults->add(stream->records ? stream->recorded_calls : launch.tag, FaultLog::of_kernel);
    arguments[count++] = &fault;
  }
  const auto groups = [&launch](int axis) { return static_cast<unsigned int>(launch.groups[axis]); };
  const CUresult result =
      device->driver->launch_kernel(kernel.function, groups(0), groups(1), groups(2), kernel.group[0], kernel.group[1],
                                    kernel.group[2], 0, stream->handle, arguments, nullptr);
  if (result == CUDA_SUCCESS) return EP_STATUS_OK;
  if (faults) stream->faults->cancel();
  return driver_failed(device, result, "launching a kernel", error);
}

}  // namespace

ep_status kernel_launch(ep_kernel* kernel, ep_stream* stream, const ep_kernel_launch* launch, ep_fault*,
                        ep_error** error) {
  ep_device* device = stream->device;
  RecordableCall call(stream);
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  const Current current(device);
  if (current.result() != CUDA_SUCCESS) {
    return driver_failed(device, current.result(), "launching a kernel", error);
  }
  return call.end(launch_now(*kernel, stream, *launch, error));
}

}  // namespace tenon::provider::cuda
