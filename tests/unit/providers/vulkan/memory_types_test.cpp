// The choice of memory types on tables of vkGetPhysicalDeviceMemoryProperties from real devices.
#include "providers/vulkan/driver/memory_types.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace tenon::provider::vulkan {
namespace {

constexpr VkMemoryPropertyFlags L = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags V = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
constexpr VkMemoryPropertyFlags C = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags H = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr VkMemoryPropertyFlags Lazy = VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT;
constexpr VkMemoryPropertyFlags Protected = VK_MEMORY_PROPERTY_PROTECTED_BIT;
constexpr VkMemoryPropertyFlags Amd =
    VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;
constexpr uint64_t MiB = UINT64_C(1) << 20;
constexpr uint64_t GiB = UINT64_C(1) << 30;

struct Type {
  VkMemoryPropertyFlags flags;
  uint32_t heap;
};
struct Heap {
  uint64_t size;
  bool local;
};

VkPhysicalDeviceMemoryProperties table(std::initializer_list<Heap> heaps, std::initializer_list<Type> types) {
  VkPhysicalDeviceMemoryProperties memory{};
  for (const Heap& heap : heaps) {
    memory.memoryHeaps[memory.memoryHeapCount++] = {
        heap.size, heap.local ? VkMemoryHeapFlags{VK_MEMORY_HEAP_DEVICE_LOCAL_BIT} : VkMemoryHeapFlags{0}};
  }
  for (const Type& type : types) memory.memoryTypes[memory.memoryTypeCount++] = {type.flags, type.heap};
  return memory;
}

struct Indices {
  uint32_t operands, upload, download, parameters;
  friend bool operator==(const Indices&, const Indices&) = default;
};
std::ostream& operator<<(std::ostream& out, const Indices& i) {
  return out << "operands " << i.operands << " upload " << i.upload << " download " << i.download << " parameters "
             << i.parameters;
}

Indices planned(const VkPhysicalDeviceMemoryProperties& memory, VkPhysicalDeviceType type, uint32_t allowed = ~0U) {
  const std::optional<MemoryPlan> plan = plan_memory(memory, allowed, type);
  if (!plan) return {99, 99, 99, 99};
  return {plan->operands.index, plan->upload.index, plan->download.index, plan->parameters.index};
}

constexpr VkPhysicalDeviceType discrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
constexpr VkPhysicalDeviceType integrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;

// GeForce RTX 3080, driver 535: the first types are for images and cannot be used for buffers.
TEST(MemoryTypes, NvidiaDiscreteKeepsOperandsOutOfTheWindow) {
  const auto memory = table({{10240 * MiB, true}, {24000 * MiB, false}, {246 * MiB, true}},
                            {{0, 1}, {L, 0}, {V | C, 1}, {V | C | H, 1}, {L | V | C, 2}});
  EXPECT_EQ(planned(memory, discrete), (Indices{1, 2, 3, 4}));
  EXPECT_EQ(planned(memory, discrete, 0b11110), (Indices{1, 2, 3, 4}));
}

// GeForce RTX 4090 with resizable BAR: all device memory is host-visible, but operands do not go to the visible type.
TEST(MemoryTypes, NvidiaWithResizableBarKeepsToUnmappedMemory) {
  const auto memory =
      table({{24564 * MiB, true}, {48000 * MiB, false}}, {{0, 1}, {L, 0}, {V | C, 1}, {V | C | H, 1}, {L | V | C, 0}});
  EXPECT_EQ(planned(memory, discrete), (Indices{1, 2, 3, 4}));
}

// Radeon RX 580, RADV, without resizable BAR: a window of 256 MiB, and AMD's uncached twins.
TEST(MemoryTypes, AmdWithoutResizableBarNeverTakesUncachedTypes) {
  const auto memory = table({{7936 * MiB, true}, {16000 * MiB, false}, {256 * MiB, true}}, {{L, 0},
                                                                                            {L, 0},
                                                                                            {V | C, 1},
                                                                                            {L | V | C, 2},
                                                                                            {L | V | C, 2},
                                                                                            {V | C | H, 1},
                                                                                            {V | C | H, 1},
                                                                                            {L | Amd, 0},
                                                                                            {V | C | Amd, 1},
                                                                                            {L | V | C | Amd, 2},
                                                                                            {V | C | H | Amd, 1}});
  EXPECT_EQ(planned(memory, discrete), (Indices{0, 2, 5, 3}));
}

// Radeon RX 6800, RADV, with resizable BAR: one heap of device memory, visible as well.
TEST(MemoryTypes, AmdWithResizableBarKeepsToUnmappedMemory) {
  const auto memory = table({{16368 * MiB, true}, {32000 * MiB, false}},
                            {{L, 0}, {L, 0}, {V | C, 1}, {L | V | C, 0}, {L | V | C, 0}, {V | C | H, 1}, {L | Amd, 0}});
  EXPECT_EQ(planned(memory, discrete), (Indices{0, 2, 5, 3}));
}

// Intel UHD 630, ANV: one heap for all. The host should read the cached type.
TEST(MemoryTypes, IntelIntegratedMapsItsOperands) {
  const auto memory = table({{12 * GiB, true}}, {{L | V | C, 0}, {L | V | C | H, 0}});
  EXPECT_EQ(planned(memory, integrated), (Indices{1, 0, 1, 0}));
}

// Mesa's lavapipe.
TEST(MemoryTypes, LavapipeHasOneTypeForAll) {
  const auto memory = table({{2 * GiB, true}}, {{L | V | C | H, 0}});
  EXPECT_EQ(planned(memory, VK_PHYSICAL_DEVICE_TYPE_CPU), (Indices{0, 0, 0, 0}));
}

// Mali-G78 (and Adreno similarly): cached memory that is not coherent, lazily allocated and protected types.
TEST(MemoryTypes, MaliReadsThroughCachedMemoryThatIsNotCoherent) {
  const auto memory =
      table({{8 * GiB, true}, {100 * MiB, true}}, {{L | V | C, 0}, {L | V | H, 0}, {L | Lazy, 0}, {L | Protected, 1}});
  EXPECT_EQ(planned(memory, integrated), (Indices{1, 0, 1, 0}));
  const std::optional<MemoryPlan> plan = plan_memory(memory, ~0U, integrated);
  EXPECT_FALSE(plan->operands.is_coherent());
  EXPECT_TRUE(plan->upload.is_coherent());
  EXPECT_TRUE(plan->parameters.is_coherent());
}

// Apple M1 through MoltenVK.
TEST(MemoryTypes, AppleMapsItsOperands) {
  const auto memory = table({{10 * GiB, true}}, {{L, 0}, {L | V | C | H, 0}, {L | Lazy, 0}});
  EXPECT_EQ(planned(memory, integrated), (Indices{1, 1, 1, 1}));
}

TEST(MemoryTypes, NeverTakesATypeThatServesNoBuffer) {
  const auto memory = table({{8 * GiB, true}, {16 * GiB, false}}, {{L, 0}, {L, 0}, {V | C, 1}});
  EXPECT_EQ(planned(memory, discrete, 0b110), (Indices{1, 2, 2, 2}));
}

TEST(MemoryTypes, IsNoPlanWithoutMemoryTheHostCanWrite) {
  EXPECT_EQ(planned(table({{8 * GiB, true}}, {{L, 0}}), discrete), (Indices{99, 99, 99, 99}));
  EXPECT_EQ(planned(table({{8 * GiB, true}}, {{L, 0}, {V | H, 0}}), discrete), (Indices{99, 99, 99, 99}));
}

}  // namespace
}  // namespace tenon::provider::vulkan
