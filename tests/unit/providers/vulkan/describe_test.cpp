// The reasons why a physical device is unusable, and the class of a device.
#include "providers/vulkan/driver/describe.h"

#include <gtest/gtest.h>

namespace tenon::provider::vulkan {
namespace {

PhysicalFacts sound() {
  PhysicalFacts facts;
  facts.properties.apiVersion = VK_API_VERSION_1_2;
  facts.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  facts.features12.bufferDeviceAddress = VK_TRUE;
  facts.features12.timelineSemaphore = VK_TRUE;
  facts.features12.scalarBlockLayout = VK_TRUE;
  facts.queue_family = 0;
  facts.memory.memoryHeapCount = 1;
  facts.memory.memoryHeaps[0] = {UINT64_C(1) << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  facts.memory.memoryTypeCount = 1;
  facts.memory.memoryTypes[0] = {
      VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
      0};
  return facts;
}

TEST(Describe, ASoundDeviceIsUsable) { EXPECT_EQ(why_unusable(sound()), ""); }

TEST(Describe, NamesTheVersionOfAnOldDriver) {
  PhysicalFacts facts = sound();
  facts.properties.apiVersion = VK_API_VERSION_1_1;
  EXPECT_EQ(why_unusable(facts), "its driver speaks Vulkan 1.1; 1.2 is needed.");
}

TEST(Describe, NamesEverythingThatIsMissing) {
  PhysicalFacts facts = sound();
  facts.features12.bufferDeviceAddress = VK_FALSE;
  facts.features12.scalarBlockLayout = VK_FALSE;
  facts.queue_family.reset();
  EXPECT_EQ(why_unusable(facts),
            "its driver does not offer bufferDeviceAddress, scalarBlockLayout, a queue that computes.");
}

TEST(Describe, ABlockIsNoLargerThanAMemoryOrABuffer) {
  EXPECT_EQ(largest_block(0xfffffffc, 0), 0xffffff00u);           // RADV, which states no limit for buffers
  EXPECT_EQ(largest_block(0x80000000, 0xffffffff), 0x80000000u);  // lavapipe
  EXPECT_EQ(largest_block(0x100000000, 0x40000000), 0x40000000u);
}

TEST(Describe, StatesWhatItsExtensionsImport) {
  constexpr auto bit = [](int32_t type) { return UINT64_C(1) << type; };
  PhysicalFacts facts = sound();
  EXPECT_EQ(memory_handles(facts), bit(EP_HANDLE_VK_BUFFER));
  EXPECT_EQ(semaphore_handles(facts), bit(EP_HANDLE_VK_SEMAPHORE));
  EXPECT_TRUE(extensions_to_enable(facts).empty());
  facts.memory_fd = facts.dma_buf = facts.semaphore_fd = true;
  facts.host_page = 4096;
  EXPECT_EQ(memory_handles(facts), bit(EP_HANDLE_VK_BUFFER) | bit(EP_HANDLE_OPAQUE_FD) | bit(EP_HANDLE_DMA_BUF));
  EXPECT_EQ(semaphore_handles(facts), bit(EP_HANDLE_VK_SEMAPHORE) | bit(EP_HANDLE_OPAQUE_FD));
  EXPECT_EQ(extensions_to_enable(facts).size(), 4u);
}

TEST(Describe, StatesTheTierThatTheDriverGuarantees) {
  constexpr uint64_t f32 = uint64_t{1} << EP_DTYPE_f32, f64 = uint64_t{1} << EP_DTYPE_f64;
  PhysicalDevice device;
  device.facts = sound();
  ep_device_info weak{}, strong{};
  fill_info(device, &weak);
  EXPECT_EQ(weak.portable_dtypes & f32, f32) << "sums and products may be rounded toward zero";
  EXPECT_EQ(weak.flushed_dtypes, f32 | uint64_t{1} << EP_DTYPE_bf16);
  EXPECT_EQ((weak.portable_dtypes | weak.flushed_dtypes) & f64, 0u) << "f64 is only moved";
  device.facts.rounds_even = device.facts.keeps_denormals = true;
  fill_info(device, &strong);
  EXPECT_EQ(strong.portable_dtypes | strong.relaxed_dtypes | strong.flushed_dtypes, 0u);
}

TEST(Describe, AProcessorIsASoftwareDevice) {
  EXPECT_EQ(class_of(VK_PHYSICAL_DEVICE_TYPE_CPU), EP_DEVICE_CLASS_SOFTWARE);
  EXPECT_EQ(class_of(VK_PHYSICAL_DEVICE_TYPE_OTHER), EP_DEVICE_CLASS_SOFTWARE);
  EXPECT_EQ(class_of(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU), EP_DEVICE_CLASS_DISCRETE);
  EXPECT_EQ(class_of(VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU), EP_DEVICE_CLASS_INTEGRATED);
}

}  // namespace
}  // namespace tenon::provider::vulkan
