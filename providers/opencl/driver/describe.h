// The facts about a device that are known before it is opened.
#pragma once

#include <string>
#include <vector>

#include "ep_api/ep_api.h"
#include "providers/opencl/driver/api.h"

namespace tenon::provider::opencl {

struct PhysicalDevice {
  cl_device_id handle = nullptr;
  uint32_t number = 0;  // index in the result of find_devices
  std::string name;
  std::string fingerprint;
  std::string compiler;  // for display
  std::string unusable;  // empty: usable
  std::string remedy;

  // Raw facts. Tests fill them in by hand.
  cl_device_type type = CL_DEVICE_TYPE_GPU;
  int version = 120;  // OpenCL version: 120 is 1.2
  bool available = true;
  bool compiles = true;
  bool little_endian = true;
  bool unified_memory = false;
  bool exact_division = false;  // the compiler can be told to round f32 quotients and roots to nearest
  bool f64 = false;
  bool keeps_denormals = false;          // for f32; f64 always keeps them
  bool f16 = false;                      // the device computes with half
  uint64_t work_group = 256;             // most work-items per group
  uint64_t group_dims[3] = {256, 1, 1};  // most work-items per group along each axis
  uint64_t local_memory = 0;             // bytes of local memory per group
  uint64_t parameter_bytes = 1024;       // limit for the arguments of a kernel
  uint64_t memory = 0;
  uint64_t largest_allocation = 0;
  uint32_t units = 0;
  bool has_uuid = false;
  uint8_t uuid[16]{};
  int64_t pci[4] = {-1, -1, -1, -1};
};

// Blocks begin at multiples of this.
inline constexpr uint64_t operand_alignment = 256;
// The smallest limits with which kernels work.
inline constexpr uint64_t least_work_group = 256;
inline constexpr uint64_t least_parameter_bytes = 1024;

inline constexpr cl_int no_platform = -1001;  // CL_PLATFORM_NOT_FOUND_KHR

// Finds all devices that the ICD loader lists. Returns CL_SUCCESS, no_platform, or another result of clGetPlatformIDs.
cl_int find_devices(const Api& api, std::vector<PhysicalDevice>* devices);
// Reads all facts of a device from the driver.
PhysicalDevice describe(const Api& api, cl_platform_id platform, cl_device_id handle);
// A clause such as "its driver speaks OpenCL 1.1; 1.2 is needed."; empty if the provider can use the device.
std::string why_unusable(const PhysicalDevice& device);
// The class of a device. A processor with an OpenCL driver is class software: listed, but never the default.
int32_t class_of(cl_device_type type, bool unified_memory);
// The version in a text such as "OpenCL 1.2 pocl": 120. 0 if the text has another form.
int version_of(const std::string& text);
void fill_info(const PhysicalDevice& device, ep_device_info* info);

}  // namespace tenon::provider::opencl
