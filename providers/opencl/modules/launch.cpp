// Launches of compiled kernels.
#include "providers/opencl/modules/modules.h"
#include "providers/opencl/modules/source.h"

namespace tenon::provider::opencl {
namespace {

// The arguments of one launch, in the order of the rewritten head (head.h).
struct Arguments {
  cl_mem buffers[most_module_buffers] = {};
  uint64_t words[most_module_buffers + 1] = {};  // struct ep_launch_words
  uint32_t count = 0;

  void add(ep_buffer buffer) {
    buffers[count] = buffer_of(buffer);
    words[++count] = buffer.offset;
  }
};

// Parameters in device memory. The driver keeps them until the launch is done.
struct Parameters {
  const Context& context;
  cl_mem buffer = nullptr;

  explicit Parameters(const Context& of) : context(of) {}
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;
  ~Parameters() {
    if (buffer != nullptr) context.api.clReleaseMemObject(buffer);
  }
};

}  // namespace

ep_status kernel_launch(ep_kernel* kernel, ep_stream* stream, const ep_kernel_launch* launch, ep_fault*,
                        ep_error** error) {
  CommandQueue& queue = *stream->queue;
  Context& context = queue.context();
  Arguments given;
  for (uint32_t i = 0; i < kernel->buffer_count; ++i) given.add(launch->buffers[i]);
  if ((kernel->flags & EP_ENTRY_FLAG_WORKSPACE) != 0) given.add(launch->workspace);
  if ((kernel->flags & EP_ENTRY_FLAG_SCRATCH) != 0) given.add(launch->scratch);
  Argument arguments[most_module_buffers + 3];
  uint32_t count = 0;
  for (uint32_t i = 0; i < given.count; ++i) arguments[count++] = {sizeof(cl_mem), &given.buffers[i]};
  Parameters parameters(context);
  if (kernel->by_reference) {
    cl_int result = CL_SUCCESS;
    // The flags say that nothing is written through the pointer.
    parameters.buffer =
        context.api.clCreateBuffer(context.handle(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, launch->parameter_bytes,
                                   const_cast<void*>(launch->parameters), &result);
    if (result != CL_SUCCESS) return context.failed(error, "clCreateBuffer", result);
    arguments[count++] = {sizeof(cl_mem), &parameters.buffer};
  } else if (launch->parameter_bytes != 0) {
    arguments[count++] = {launch->parameter_bytes, launch->parameters};
  }
  cl_mem faults = nullptr;
  if ((kernel->flags & EP_ENTRY_FLAG_FAULTS) != 0) {
    uint32_t slot = 0;
    const ep_status status = queue.faults().watch(launch->tag, FaultLog::of_kernel, 0, &faults, &slot, error);
    if (status != EP_STATUS_OK) return status;
    given.words[0] = slot;
    arguments[count++] = {sizeof faults, &faults};
  }
  arguments[count++] = {kernel->words, given.words};
  size_t global[3];
  for (int axis = 0; axis < 3; ++axis) global[axis] = launch->groups[axis] * kernel->group[axis];
  return queue.launch_grid(*kernel->kernel, {arguments, count}, global, kernel->group, error);
}

}  // namespace tenon::provider::opencl
