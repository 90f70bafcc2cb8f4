// Launches of compiled kernels.
#include <cstring>

#include "providers/vulkan/modules/modules.h"

namespace tenon::provider::vulkan {
namespace {

// Writes arguments one after the other.
class Writer {
 public:
  explicit Writer(char* at) : begin_(at), at_(at) {}
  void add(uint64_t number) { add(&number, sizeof number); }
  void add(const void* bytes, uint32_t size) {
    if (size != 0) std::memcpy(at_, bytes, size);
    at_ += size;
  }
  uint32_t size() const { return static_cast<uint32_t>(at_ - begin_); }

 private:
  char* const begin_;
  char* at_;
};

void add_buffers(const ep_kernel& kernel, const ep_kernel_launch& launch, Writer* writer) {
  uint32_t count = kernel.buffer_count;
  for (uint32_t i = 0; i < kernel.buffer_count; ++i) writer->add(address_of(launch.buffers[i]));
  for (const auto& [flag, buffer] :
       {std::pair{EP_ENTRY_FLAG_WORKSPACE, launch.workspace}, std::pair{EP_ENTRY_FLAG_SCRATCH, launch.scratch}}) {
    if ((kernel.flags & flag) == 0) continue;
    writer->add(address_of(buffer));
    ++count;
  }
  for (; count < kernel.words; ++count) writer->add(uint64_t{0});
}

ep_status launch_recorded(const ep_kernel& kernel, CommandStream& stream, const ep_kernel_launch& launch,
                          ep_error** error) {
  CommandStream::Recording recording(stream);
  char push[push_bytes];
  Writer pushed(push);
  uint64_t fault = 0;
  if ((kernel.flags & EP_ENTRY_FLAG_FAULTS) != 0) {
    const ep_status status = recording.watch_faults(launch.tag, FaultWatch::of_kernel, &fault, error);
    if (status != EP_STATUS_OK) return status;
  }
  pushed.add(fault);
  if (kernel.placement != Placement::all) add_buffers(kernel, launch, &pushed);
  if (kernel.placement == Placement::pushed) {
    pushed.add(launch.parameters, launch.parameter_bytes);
  } else {
    const uint64_t buffers = kernel.placement == Placement::all ? kernel.words * sizeof(uint64_t) : 0;
    StagedRange range;
    const ep_status status = recording.parameters(buffers + launch.parameter_bytes, &range, error);
    if (status != EP_STATUS_OK) return status;
    Writer staged(range.host());
    if (kernel.placement == Placement::all) add_buffers(kernel, launch, &staged);
    staged.add(launch.parameters, launch.parameter_bytes);
    pushed.add(range.address());
  }
  Dispatch dispatch;
  dispatch.pipeline = kernel.pipeline->handle();
  dispatch.push = push;
  dispatch.push_size = (pushed.size() + 3) / 4 * 4;
  for (int axis = 0; axis < 3; ++axis) dispatch.groups[axis] = static_cast<uint32_t>(launch.groups[axis]);
  return recording.add_dispatch(dispatch, error);
}

}  // namespace

ep_status kernel_launch(ep_kernel* kernel, ep_stream* stream, const ep_kernel_launch* launch, ep_fault*,
                        ep_error** error) {
  if (const ep_status status = stream->commands->check(error); status != EP_STATUS_OK) return status;
  CommandStream::Call call(*stream->commands);
  return call.end(launch_recorded(*kernel, *stream->commands, *launch, error));
}

}  // namespace tenon::provider::vulkan
