// The linker takes all other functions from the real loader, with which the shim is linked.
#define CL_TARGET_OPENCL_VERSION 120
#include "tests/unit/providers/opencl/shim.h"

#include <CL/cl.h>
#include <dlfcn.h>
#include <stddef.h>

#define SHIM_EXPORT __attribute__((visibility("default")))

static struct OpenclShimControl control;

SHIM_EXPORT struct OpenclShimControl* opencl_shim_control(void) { return &control; }

static void* real(const char* name) {
  void* loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  return loader == NULL ? NULL : dlsym(loader, name);
}

SHIM_EXPORT cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                                    size_t offset, size_t size, const void* data, cl_uint count,
                                                    const cl_event* events, cl_event* event) {
  if (control.lost) return CL_DEVICE_NOT_AVAILABLE;
  __typeof__(&clEnqueueWriteBuffer) function = (__typeof__(&clEnqueueWriteBuffer))real("clEnqueueWriteBuffer");
  return function(queue, buffer, blocking, offset, size, data, count, events, event);
}

SHIM_EXPORT cl_program CL_API_CALL clCreateProgramWithBinary(cl_context context, cl_uint count,
                                                             const cl_device_id* devices, const size_t* sizes,
                                                             const unsigned char** binaries, cl_int* statuses,
                                                             cl_int* result) {
  if (control.lost || control.load_lost) {
    *result = CL_DEVICE_NOT_AVAILABLE;
    return NULL;
  }
  __typeof__(&clCreateProgramWithBinary) function =
      (__typeof__(&clCreateProgramWithBinary))real("clCreateProgramWithBinary");
  return function(context, count, devices, sizes, binaries, statuses, result);
}
