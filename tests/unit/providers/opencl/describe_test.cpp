// The reasons why a device is unusable, its class, its memory.
#include "providers/opencl/driver/describe.h"

#include <gtest/gtest.h>

namespace tenon::provider::opencl {
namespace {

PhysicalDevice sound() {
  PhysicalDevice device;
  device.name = "A device";
  device.exact_division = true;
  device.memory = UINT64_C(8) << 30;
  device.largest_allocation = UINT64_C(2) << 30;
  return device;
}

TEST(Describe, ASoundDeviceIsUsable) { EXPECT_EQ(why_unusable(sound()), ""); }

TEST(Describe, NamesTheVersionOfAnOldDriver) {
  PhysicalDevice device = sound();
  device.version = version_of("OpenCL 1.1 some driver");
  EXPECT_EQ(why_unusable(device), "its driver speaks OpenCL 1.1; 1.2 is needed.");
  device.version = version_of("a text of another form");
  EXPECT_EQ(why_unusable(device), "its driver speaks OpenCL 0.0; 1.2 is needed.");
}

TEST(Describe, ReadsVersionsOfAllForms) {
  EXPECT_EQ(version_of("OpenCL 1.2 pocl"), 120);
  EXPECT_EQ(version_of("OpenCL 3.0"), 300);
}

TEST(Describe, NeedsACompilerAndGroupsAndArguments) {
  PhysicalDevice device = sound();
  device.compiles = false;
  EXPECT_EQ(why_unusable(device), "its driver has no compiler for OpenCL C.");
  device = sound();
  device.work_group = 128;
  EXPECT_EQ(why_unusable(device), "its groups have at most 128 work-items; 256 are needed.");
  device = sound();
  device.parameter_bytes = 256;
  EXPECT_EQ(why_unusable(device), "its kernels take at most 256 bytes of arguments; 1024 are needed.");
}

TEST(Describe, NeedsExactDivisionOrF64) {
  PhysicalDevice device = sound();
  device.exact_division = false;
  EXPECT_EQ(why_unusable(device), "it neither rounds f32 quotients and roots correctly nor computes in f64.");
  device.f64 = true;
  EXPECT_EQ(why_unusable(device), "");
}

TEST(Describe, AProcessorIsASoftwareDevice) {
  EXPECT_EQ(class_of(CL_DEVICE_TYPE_CPU, true), EP_DEVICE_CLASS_SOFTWARE);
  EXPECT_EQ(class_of(CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_DEFAULT, true), EP_DEVICE_CLASS_SOFTWARE);
  EXPECT_EQ(class_of(CL_DEVICE_TYPE_GPU, false), EP_DEVICE_CLASS_DISCRETE);
  EXPECT_EQ(class_of(CL_DEVICE_TYPE_GPU, true), EP_DEVICE_CLASS_INTEGRATED);
  EXPECT_EQ(class_of(CL_DEVICE_TYPE_ACCELERATOR, false), EP_DEVICE_CLASS_ACCELERATOR);
}

TEST(Describe, StatesItsOnePool) {
  const PhysicalDevice device = sound();
  ep_device_info info{};
  fill_info(device, &info);
  EXPECT_EQ(info.pool_count, 1u);
  EXPECT_EQ(info.pools[0].flags, EP_POOL_FLAG_DEVICE_LOCAL);
  EXPECT_EQ(info.pools[0].size, UINT64_C(8) << 30);
  EXPECT_EQ(info.pools[0].largest_allocation, UINT64_C(2) << 30);
  EXPECT_EQ(info.pci[0], -1);
}

}  // namespace
}  // namespace tenon::provider::opencl
