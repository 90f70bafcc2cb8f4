#include "providers/opencl/driver/describe.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "sdk/provider/error.h"
#include "sdk/provider/import.h"
#include "sdk/provider/plugin.h"

namespace tenon::provider::opencl {
namespace {

// Names of cl_khr_device_uuid and cl_khr_pci_bus_info, which older headers lack.
constexpr cl_device_info device_uuid = 0x106A;
constexpr cl_device_info device_pci = 0x410F;

std::string text_of(const Api& api, cl_device_id device, cl_device_info what) {
  size_t size = 0;
  if (api.clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (api.clGetDeviceInfo(device, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
  text.resize(std::strlen(text.c_str()));
  return text;
}

template <class T>
T value_of(const Api& api, cl_device_id device, cl_device_info what) {
  T value{};
  return api.clGetDeviceInfo(device, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : T{};
}

bool has(const std::string& extensions, const std::string& name) {
  return (' ' + extensions + ' ').find(' ' + name + ' ') != std::string::npos;
}

void read_identity(const Api& api, const std::string& extensions, PhysicalDevice* device) {
  if (has(extensions, "cl_khr_device_uuid")) {
    device->has_uuid =
        api.clGetDeviceInfo(device->handle, device_uuid, sizeof device->uuid, device->uuid, nullptr) == CL_SUCCESS;
  }
  cl_uint place[4] = {};
  if (has(extensions, "cl_khr_pci_bus_info") &&
      api.clGetDeviceInfo(device->handle, device_pci, sizeof place, place, nullptr) == CL_SUCCESS) {
    std::copy(place, place + 4, device->pci);
  }
}

}  // namespace

int version_of(const std::string& text) {
  int major = 0;
  int minor = 0;
  if (std::sscanf(text.c_str(), "OpenCL %d.%d", &major, &minor) != 2) return 0;
  return major * 100 + minor * 10;
}

cl_int find_devices(const Api& api, std::vector<PhysicalDevice>* devices) {
  cl_uint count = 0;
  cl_int result = api.clGetPlatformIDs(0, nullptr, &count);
  std::vector<cl_platform_id> platforms(count);
  if (result == CL_SUCCESS && count != 0) result = api.clGetPlatformIDs(count, platforms.data(), nullptr);
  if (result == CL_SUCCESS && count == 0) result = no_platform;
  if (result != CL_SUCCESS) return result;
  for (cl_platform_id platform : platforms) {
    cl_uint there = 0;
    // A platform without devices returns CL_DEVICE_NOT_FOUND; a platform that fails counts as having no devices.
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &there) != CL_SUCCESS) continue;
    std::vector<cl_device_id> handles(there);
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, there, handles.data(), nullptr) != CL_SUCCESS) continue;
    for (cl_device_id handle : handles) {
      devices->push_back(describe(api, platform, handle));
      devices->back().number = static_cast<uint32_t>(devices->size() - 1);
    }
  }
  return CL_SUCCESS;
}

PhysicalDevice describe(const Api& api, cl_platform_id platform, cl_device_id handle) {
  PhysicalDevice device;
  device.handle = handle;
  device.name = text_of(api, handle, CL_DEVICE_NAME);
  const std::string version = text_of(api, handle, CL_DEVICE_VERSION);
  const std::string extensions = text_of(api, handle, CL_DEVICE_EXTENSIONS);
  char platform_version[256] = {};
  api.clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof platform_version - 1, platform_version, nullptr);
  device.fingerprint =
      fmt::format("{}, {}, {}, driver {}, platform {}", device.name, text_of(api, handle, CL_DEVICE_VENDOR), version,
                  text_of(api, handle, CL_DRIVER_VERSION), platform_version);
  device.version = version_of(version);
  device.compiler = fmt::format("{}, driver {}", text_of(api, handle, CL_DEVICE_OPENCL_C_VERSION),
                                text_of(api, handle, CL_DRIVER_VERSION));
  device.type = value_of<cl_device_type>(api, handle, CL_DEVICE_TYPE);
  device.available = value_of<cl_bool>(api, handle, CL_DEVICE_AVAILABLE) != 0;
  device.compiles = value_of<cl_bool>(api, handle, CL_DEVICE_COMPILER_AVAILABLE) != 0;
  device.little_endian = value_of<cl_bool>(api, handle, CL_DEVICE_ENDIAN_LITTLE) != 0;
  device.unified_memory = value_of<cl_bool>(api, handle, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  device.exact_division = (value_of<cl_device_fp_config>(api, handle, CL_DEVICE_SINGLE_FP_CONFIG) &
                           CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  device.keeps_denormals = (value_of<cl_device_fp_config>(api, handle, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_DENORM) != 0;
  device.f64 = value_of<cl_device_fp_config>(api, handle, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  device.f16 = has(extensions, "cl_khr_fp16");
  size_t dims[16] = {};
  if (api.clGetDeviceInfo(handle, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof dims, dims, nullptr) == CL_SUCCESS) {
    std::copy(dims, dims + 3, device.group_dims);
  }
  device.local_memory = value_of<cl_ulong>(api, handle, CL_DEVICE_LOCAL_MEM_SIZE);
  device.work_group = value_of<size_t>(api, handle, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  device.parameter_bytes = value_of<size_t>(api, handle, CL_DEVICE_MAX_PARAMETER_SIZE);
  device.memory = value_of<cl_ulong>(api, handle, CL_DEVICE_GLOBAL_MEM_SIZE);
  device.largest_allocation = value_of<cl_ulong>(api, handle, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  device.units = value_of<cl_uint>(api, handle, CL_DEVICE_MAX_COMPUTE_UNITS);
  read_identity(api, extensions, &device);
  const std::string reason = why_unusable(device);
  if (!reason.empty()) {
    device.unusable = fmt::format("{} cannot be used: {}", device.name, reason);
    device.remedy = "Install a newer driver for it.";
  }
  return device;
}

std::string why_unusable(const PhysicalDevice& device) {
  if (device.version < 120) {
    return fmt::format("its driver speaks OpenCL {}.{}; 1.2 is needed.", device.version / 100,
                       device.version / 10 % 10);
  }
  if (!device.available) return "its driver says that it is not available.";
  if (!device.compiles) return "its driver has no compiler for OpenCL C.";
  if (!device.little_endian) return "it is big-endian, the host is little-endian.";
  if (device.work_group < least_work_group) {
    return fmt::format("its groups have at most {} work-items; {} are needed.", device.work_group, least_work_group);
  }
  if (device.parameter_bytes < least_parameter_bytes) {
    return fmt::format("its kernels take at most {} bytes of arguments; {} are needed.", device.parameter_bytes,
                       least_parameter_bytes);
  }
  if (!device.exact_division && !device.f64) {
    return "it neither rounds f32 quotients and roots correctly nor computes in f64.";
  }
  return {};
}

int32_t class_of(cl_device_type type, bool unified_memory) {
  if ((type & CL_DEVICE_TYPE_GPU) != 0) {
    return unified_memory ? EP_DEVICE_CLASS_INTEGRATED : EP_DEVICE_CLASS_DISCRETE;
  }
  return (type & CL_DEVICE_TYPE_ACCELERATOR) != 0 ? EP_DEVICE_CLASS_ACCELERATOR : EP_DEVICE_CLASS_SOFTWARE;
}

void fill_info(const PhysicalDevice& device, ep_device_info* info) {
  info->name = to_ep_string(device.name);
  info->fingerprint = to_ep_string(device.fingerprint);
  info->unusable_reason = to_ep_string(device.unusable);
  info->remedy = to_ep_string(device.remedy);
  info->device_class = class_of(device.type, device.unified_memory);
  info->dtypes = every_dtype;
  // For f32 we use our own functions where OpenCL allows a device to be less exact; f64 uses the device's functions.
  // Narrow dtypes compute in f32; denormals of f16 are normal numbers in f32, denormals of bf16 are not.
  info->portable_dtypes = UINT64_C(1) << EP_DTYPE_f64;
  if (!device.keeps_denormals) info->flushed_dtypes = UINT64_C(1) << EP_DTYPE_f32 | UINT64_C(1) << EP_DTYPE_bf16;
  if (device.has_uuid) std::memcpy(info->uuid, device.uuid, sizeof info->uuid);
  std::copy(device.pci, device.pci + 4, info->pci);
  info->threads = info->device_class == EP_DEVICE_CLASS_SOFTWARE ? device.units : 0;
  info->memory_handles = handle_bit(EP_HANDLE_CL_MEM);
  info->stream_handles = handle_bit(EP_HANDLE_CL_QUEUE);
  info->semaphore_handles = handle_bit(EP_HANDLE_CL_EVENT);
  info->device_handles = handle_bit(EP_HANDLE_CL_CONTEXT);
  info->native_memory = EP_HANDLE_CL_MEM;
  info->pool_count = 1;
  ep_memory_pool_info& pool = info->pools[0];
  pool.flags = EP_POOL_FLAG_DEVICE_LOCAL;
  pool.size = device.memory;
  pool.minimum_alignment = operand_alignment;
  pool.preferred_block = info->device_class == EP_DEVICE_CLASS_SOFTWARE ? UINT64_C(2) << 20 : UINT64_C(16) << 20;
  pool.largest_allocation = device.largest_allocation;
}

}  // namespace tenon::provider::opencl
