// Api: the functions of OpenCL 1.2, found at run time. The provider does not link libOpenCL; it opens the ICD loader
// when the host first counts devices, so a machine without OpenCL gets a message instead of a load failure.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>

namespace tenon::provider::opencl {

#define TENON_OPENCL_FUNCTIONS(X) \
  X(clGetPlatformIDs)             \
  X(clGetPlatformInfo)            \
  X(clGetDeviceIDs)               \
  X(clGetDeviceInfo)              \
  X(clCreateContext)              \
  X(clGetContextInfo)             \
  X(clRetainContext)              \
  X(clReleaseContext)             \
  X(clCreateCommandQueue)         \
  X(clGetCommandQueueInfo)        \
  X(clRetainCommandQueue)         \
  X(clReleaseCommandQueue)        \
  X(clCreateBuffer)               \
  X(clGetMemObjectInfo)           \
  X(clRetainMemObject)            \
  X(clReleaseMemObject)           \
  X(clCreateProgramWithSource)    \
  X(clCreateProgramWithBinary)    \
  X(clBuildProgram)               \
  X(clGetProgramBuildInfo)        \
  X(clGetProgramInfo)             \
  X(clReleaseProgram)             \
  X(clCreateKernel)               \
  X(clSetKernelArg)               \
  X(clGetKernelWorkGroupInfo)     \
  X(clReleaseKernel)              \
  X(clEnqueueNDRangeKernel)       \
  X(clEnqueueReadBuffer)          \
  X(clEnqueueWriteBuffer)         \
  X(clEnqueueCopyBuffer)          \
  X(clEnqueueFillBuffer)          \
  X(clEnqueueMarkerWithWaitList)  \
  X(clEnqueueBarrierWithWaitList) \
  X(clFlush)                      \
  X(clFinish)                     \
  X(clWaitForEvents)              \
  X(clGetEventInfo)               \
  X(clRetainEvent)                \
  X(clGetEventProfilingInfo)      \
  X(clReleaseEvent)

struct Api {
#define TENON_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
  TENON_OPENCL_FUNCTIONS(TENON_OPENCL_MEMBER)
#undef TENON_OPENCL_MEMBER

  // Opens the ICD loader and fills all functions. Returns an error text, or an empty string. The library stays open,
  // because drivers leave threads and thread-locals that outlive dlclose.
  std::string open(const std::string& library);
};

}  // namespace tenon::provider::opencl
