// An application with its own VkDevice, separate from Tenon's: memory that it exports and host memory, in both
// directions. Then Tenon inside that VkDevice: its buffers, its queue and its semaphores.
#include <dirent.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

#include "core/ops/ops.h"
#include "core/tensor/native.h"
#include "core/tensor/stream.h"
#include "loader/loader.h"
#include "tests/fakes/async/foreign.h"
#include "tests/unit/tensor/expect_error.h"
#include "tests/unit/tensor/lent_memory.h"

namespace tenon::testing {
namespace {

#define CALL(name) reinterpret_cast<PFN_##name>(function(#name))

// A buffer of the application and its memory, mapped.
struct AppBuffer {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t allocation = 0;  // bytes
  float* data = nullptr;
};

class Application {
 public:
  Application() {
    VkApplicationInfo about{};
    about.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    about.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &about;
    EXPECT_EQ(CALL(vkCreateInstance)(&info, nullptr, &instance), VK_SUCCESS);
    uint32_t count = 1;
    CALL(vkEnumeratePhysicalDevices)(instance, &count, &physical);
    create_device();
    CALL(vkGetDeviceQueue)(device, 0, 0, &queue);
    VkCommandPoolCreateInfo pool_info{};
    pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    CALL(vkCreateCommandPool)(device, &pool_info, nullptr, &pool);
  }

  PFN_vkVoidFunction function(const char* name) const {
    static void* const library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    static const auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
    return get(instance, name);
  }

  // Allocates memory of the first type that the host can map, and exports it if `exported`.
  AppBuffer make_buffer(uint64_t bytes, bool exported, bool dedicated = false) const {
    AppBuffer made;
    VkExternalMemoryBufferCreateInfo external{};
    external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
    external.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkBufferCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.pNext = exported ? &external : nullptr;
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    EXPECT_EQ(CALL(vkCreateBuffer)(device, &info, nullptr, &made.buffer), VK_SUCCESS);
    VkMemoryRequirements needs{};
    CALL(vkGetBufferMemoryRequirements)(device, made.buffer, &needs);
    VkMemoryDedicatedAllocateInfo alone{};
    alone.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO;
    alone.buffer = made.buffer;
    VkExportMemoryAllocateInfo exports{};
    exports.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
    exports.pNext = dedicated ? &alone : nullptr;
    exports.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkMemoryAllocateFlagsInfo flags{};
    flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
    flags.pNext = exported ? &exports : nullptr;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo allocation{};
    allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    allocation.pNext = &flags;
    allocation.allocationSize = made.allocation = needs.size;
    allocation.memoryTypeIndex = mapped_type(needs.memoryTypeBits);
    EXPECT_EQ(CALL(vkAllocateMemory)(device, &allocation, nullptr, &made.memory), VK_SUCCESS);
    EXPECT_EQ(CALL(vkBindBufferMemory)(device, made.buffer, made.memory, 0), VK_SUCCESS);
    void* data = nullptr;
    EXPECT_EQ(CALL(vkMapMemory)(device, made.memory, 0, VK_WHOLE_SIZE, 0, &data), VK_SUCCESS);
    made.data = static_cast<float*>(data);
    return made;
  }
  int export_memory(const AppBuffer& buffer) const {
    VkMemoryGetFdInfoKHR info{};
    info.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR;
    info.memory = buffer.memory;
    info.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    int fd = -1;
    EXPECT_EQ(CALL(vkGetMemoryFdKHR)(device, &info, &fd), VK_SUCCESS);
    return fd;
  }
  void destroy(const AppBuffer& buffer) const {
    CALL(vkDestroyBuffer)(device, buffer.buffer, nullptr);
    CALL(vkFreeMemory)(device, buffer.memory, nullptr);
  }

  VkSemaphore make_semaphore(VkSemaphoreType kind) const {
    VkSemaphoreTypeCreateInfo type{};
    type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    type.semaphoreType = kind;
    VkSemaphoreCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
    info.pNext = &type;
    VkSemaphore semaphore = VK_NULL_HANDLE;
    EXPECT_EQ(CALL(vkCreateSemaphore)(device, &info, nullptr, &semaphore), VK_SUCCESS);
    return semaphore;
  }
  void signal(VkSemaphore semaphore, uint64_t value) const {
    VkSemaphoreSignalInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
    info.semaphore = semaphore;
    info.value = value;
    EXPECT_EQ(CALL(vkSignalSemaphore)(device, &info), VK_SUCCESS);
  }
  VkResult wait(VkSemaphore semaphore, uint64_t value, uint64_t timeout_ns = UINT64_C(20'000'000'000)) const {
    VkSemaphoreWaitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    info.semaphoreCount = 1;
    info.pSemaphores = &semaphore;
    info.pValues = &value;
    return CALL(vkWaitSemaphores)(device, &info, timeout_ns);
  }

  // Copies all of `from` to `to` on the queue, after a barrier, and signals a binary semaphore if one is given. Does
  // not wait.
  // not wait.
  void submit_copy(const AppBuffer& from, const AppBuffer& to, uint64_t bytes, VkSemaphore then = VK_NULL_HANDLE) {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool;
    info.commandBufferCount = 1;
    VkCommandBuffer commands = nullptr;
    EXPECT_EQ(CALL(vkAllocateCommandBuffers)(device, &info, &commands), VK_SUCCESS);
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    CALL(vkBeginCommandBuffer)(commands, &begin);
    barrier(commands);
    const VkBufferCopy region = {0, 0, bytes};
    CALL(vkCmdCopyBuffer)(commands, from.buffer, to.buffer, 1, &region);
    barrier(commands);
    CALL(vkEndCommandBuffer)(commands);
    VkSubmitInfo submit{};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    submit.signalSemaphoreCount = then != VK_NULL_HANDLE ? 1 : 0;
    submit.pSignalSemaphores = &then;
    const std::lock_guard lock(queue_mutex);
    EXPECT_EQ(CALL(vkQueueSubmit)(queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
  }
  void wait_queue() {
    const std::lock_guard lock(queue_mutex);
    CALL(vkQueueWaitIdle)(queue);
  }

  // For NativeContext: called by Tenon around its submissions.
  static void lock(void* self) {
    auto* app = static_cast<Application*>(self);
    app->queue_mutex.lock();
    ++app->locks;
  }
  static void unlock(void* self) { static_cast<Application*>(self)->queue_mutex.unlock(); }

  VkInstance instance = nullptr;
  VkPhysicalDevice physical = nullptr;
  VkDevice device = nullptr;
  VkQueue queue = nullptr;
  VkCommandPool pool = VK_NULL_HANDLE;
  std::mutex queue_mutex;
  int locks = 0;

 private:
  void create_device() {
    VkPhysicalDeviceVulkan11Features features11{};
    features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    VkPhysicalDeviceVulkan12Features features12{};
    features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features12.pNext = &features11;
    VkPhysicalDeviceFeatures2 features{};
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.pNext = &features12;
    CALL(vkGetPhysicalDeviceFeatures2)(physical, &features);  // every existing feature
    const float priority = 1;
    VkDeviceQueueCreateInfo queues{};
    queues.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queues.queueCount = 1;
    queues.pQueuePriorities = &priority;
    const char* const extensions[] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
    VkDeviceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = &features;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queues;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = extensions;
    EXPECT_EQ(CALL(vkCreateDevice)(physical, &info, nullptr, &device), VK_SUCCESS);
  }
  uint32_t mapped_type(uint32_t allowed) const {
    VkPhysicalDeviceMemoryProperties memory{};
    CALL(vkGetPhysicalDeviceMemoryProperties)(physical, &memory);
    constexpr VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
      if ((allowed >> i & 1) != 0 && (memory.memoryTypes[i].propertyFlags & wanted) == wanted) return i;
    }
    ADD_FAILURE() << "no memory type can be mapped";
    return 0;
  }
  void barrier(VkCommandBuffer commands) const {
    VkMemoryBarrier memory{};
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    memory.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
    memory.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
    constexpr VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    CALL(vkCmdPipelineBarrier)(commands, all, all, 0, 1, &memory, 0, nullptr, 0, nullptr);
  }
};

Application& app() {
  static auto* one = new Application;
  return *one;
}

int open_descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

std::vector<float> relu_of(std::vector<float> values) {
  for (float& value : values) value = std::max(value, 0.0f);
  return values;
}

void expect_product(const float* result, const std::vector<float>& a, const std::vector<float>& b, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (int k = 0; k < n; ++k) {
        const double product = double{a[size_t(i * n + k)]} * b[size_t(k * n + j)];
        sum += product;
        size += std::abs(product);
      }
      ASSERT_NEAR(result[i * n + j], sum, 1e-6 * size) << i << ", " << j;
    }
  }
}

class VulkanInterop : public ::testing::Test {
 protected:
  std::vector<float> random(size_t count) { return random_floats(random_, count); }
  static void fill(const AppBuffer& buffer, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), buffer.data);
  }
  static std::vector<float> read(const AppBuffer& buffer, size_t count) { return {buffer.data, buffer.data + count}; }

  std::mt19937_64 random_{13};
};

// --- the application has a device of its own ---

class VulkanExported : public VulkanInterop {
 protected:
  static Device device() { return Device("vulkan:0"); }
  // Imports the exported memory, and closes the file descriptor.
  static Tensor import(const AppBuffer& buffer, const Dims& dims, bool dedicated = false) {
    const int fd = app().export_memory(buffer);
    const NativeMemory memory{{HandleType::opaque_fd, fd}, buffer.allocation, dedicated, uuid()};
    Tensor tensor = tensor_over(device(), memory, dims, {}, DType::f32);
    close(fd);
    return tensor;
  }
  static std::array<uint8_t, 16> uuid() {
    for (const loader::ListedDevice& listed : loader::list_devices()) {
      if (listed.spelling == "vulkan:0") return listed.info.uuid;
    }
    return {};
  }
};

TEST_F(VulkanExported, MemoryOfAnotherVkDeviceIsReadAndWrittenInPlace) {
  constexpr int n = 40;
  const std::vector<float> a = random(n * n), b = random(n * n);
  const AppBuffer lhs = app().make_buffer(n * n * 4, true), rhs = app().make_buffer(n * n * 4, true, true),
                  out = app().make_buffer(n * n * 4, true);
  fill(lhs, a);
  fill(rhs, b);
  fill(out, random(n * n));
  {
    const Tensor left = import(lhs, {n, n}), right = import(rhs, {n, n}, true);
    Tensor result = import(out, {n, n});
    EXPECT_EQ(left.to_host<float>(), a);
    copy_from(result, matmul(left, right));
    result.wait();
    expect_product(out.data, a, b, n);
    relu_(result);
    result.wait();
    EXPECT_GE(*std::min_element(out.data, out.data + n * n), 0.0f);
    fill(lhs, b);  // no work of Tenon is in flight
    EXPECT_EQ(neg(left).to_host<float>()[7], -b[7]);
  }
  device().synchronize();
  EXPECT_EQ(read(lhs, n * n), b) << "the memory stays the application's";
  for (const AppBuffer& buffer : {lhs, rhs, out}) app().destroy(buffer);
}

TEST_F(VulkanExported, HostMemoryIsUsedWhereItIs) {
  constexpr size_t count = 2048;
  auto* data = static_cast<float*>(std::aligned_alloc(4096, count * 4));
  const std::vector<float> given = random(count);
  std::copy(given.begin(), given.end(), data);
  bool returned = false;
  {
    Tensor tensor = tensor_over(device(), {{HandleType::host_pointer, data}, count * 4}, {count}, {}, DType::f32, 0,
                                [&] { returned = true; });
    EXPECT_EQ(relu(tensor).to_host<float>(), relu_of(given));
    neg_(tensor);
    tensor.wait();
    EXPECT_EQ(data[9], -given[9]);
    EXPECT_EQ(tensor.data(), data);
    data[9] = 4.5f;
    EXPECT_EQ(neg(tensor).to_host<float>()[9], -4.5f);
    expect_error(
        [&] {
          tensor_over(device(), {{HandleType::host_pointer, data + 1}, 4096}, {4}, {}, DType::f32);
        },
        Code::unsupported, {"whole pages of 4096 bytes"});
    expect_error(
        [&] {
          tensor_over(device(), {{HandleType::host_pointer, data}, 100}, {4}, {}, DType::f32);
        },
        Code::unsupported, {"whole pages", "the 100 bytes"});
  }
  device().synchronize();
  EXPECT_TRUE(returned);
  std::free(data);
}

TEST_F(VulkanExported, RefusalsNameTheReasonAndKeepNothing) {
  const AppBuffer buffer = app().make_buffer(4096, true);
  const int fd = app().export_memory(buffer);
  const fakes::Foreign file = fakes::Foreign::create(4096);
  device();
  uuid();
  const int before = open_descriptors();
  const auto import = [&](HandleType type, int handle, uint64_t bytes, std::array<uint8_t, 16> from) {
    return [=] { tensor_over(device(), {{type, handle}, bytes, false, from}, {4}, {}, DType::f32); };
  };
  std::array<uint8_t, 16> other = uuid();
  other[0] ^= 1;
  expect_error(import(HandleType::opaque_fd, fd, buffer.allocation, other), Code::invalid_argument, {"UUID"});
  expect_error(import(HandleType::opaque_fd, -1, 4096, {}), Code::invalid_argument, {"not an open file descriptor"});
  expect_error(import(HandleType::opaque_fd, file.fd(), 4096, {}), Code::invalid_argument,
               {"does not accept the file descriptor"});
  expect_error(import(HandleType::cuda_pointer, 1, 4096, {}), Code::unsupported, {"opaque_fd", "vk_buffer"});
  expect_error(
      [] {
        Semaphore(device(), {HandleType::cl_event, 1}, SemaphoreKind::event);
      },
      Code::unsupported, {"vk_semaphore"});
  EXPECT_EQ(open_descriptors(), before);
  for (int time = 0; time < 3; ++time) import(HandleType::opaque_fd, fd, buffer.allocation, uuid())();
  device().synchronize();
  EXPECT_EQ(open_descriptors(), before);
  close(fd);
  app().destroy(buffer);
}

// --- Tenon is in the application's device ---

class VulkanAdopted : public VulkanInterop {
 protected:
  static Device device() {
    static const Device adopted = [] {
      if (loader::list_devices().empty()) ADD_FAILURE() << "no device";
      try {
        retire("vulkan");
      } catch (const Error&) {  // the device was not loaded
      }
      return adopt_device("vulkan:0", context());
    }();
    return adopted;
  }
  static NativeContext context() {
    return NativeContext::vulkan(app().device, app().physical, app().queue, 0, Application::lock, Application::unlock,
                                 &app());
  }
  static Tensor import(const AppBuffer& buffer, const Dims& dims) {
    const auto bytes = static_cast<uint64_t>(element_count(dims)) * sizeof(float);
    return tensor_over(device(), {{HandleType::vk_buffer, buffer.buffer}, bytes}, dims, {}, DType::f32);
  }
};

TEST_F(VulkanAdopted, WorkOnTheSharedQueueRunsInTheOrderOfItsSubmission) {
  constexpr size_t count = 4096;
  const AppBuffer from = app().make_buffer(count * 4, false), shared = app().make_buffer(count * 4, false),
                  to = app().make_buffer(count * 4, false);
  Tensor tensor = import(shared, {count});
  const Stream stream = Stream::current(device());
  for (int round = 0; round < 10; ++round) {
    const std::vector<float> given = random(count);
    fill(from, given);
    app().submit_copy(from, shared, count * 4);
    relu_(tensor);
    stream.flush();
    app().submit_copy(shared, to, count * 4);
    app().wait_queue();
    ASSERT_EQ(read(to, count), relu_of(given)) << "round " << round;
  }
  EXPECT_GT(app().locks, 0);
  tensor = Tensor();
  device().synchronize();
  for (const AppBuffer& buffer : {from, shared, to}) app().destroy(buffer);
}

TEST_F(VulkanAdopted, TimelineSemaphoresHandMemoryToAndFro) {
  constexpr size_t count = 512;
  const AppBuffer shared = app().make_buffer(count * 4, false);
  VkSemaphore handle = app().make_semaphore(VK_SEMAPHORE_TYPE_TIMELINE);
  {
    Tensor tensor = import(shared, {count});
    const Semaphore semaphore(device(), {HandleType::vk_semaphore, handle}, SemaphoreKind::timeline);
    const Stream stream = Stream::current(device());
    for (uint64_t round = 0; round < 10; ++round) {
      stream.wait(semaphore, 2 * round + 1, {tensor});
      relu_(tensor);
      stream.signal(semaphore, 2 * round + 2, {tensor});
      if (round % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const std::vector<float> given = random(count);
      fill(shared, given);
      app().signal(handle, 2 * round + 1);
      ASSERT_EQ(app().wait(handle, 2 * round + 2), VK_SUCCESS);
      ASSERT_EQ(read(shared, count), relu_of(given)) << "round " << round;
    }
    device().synchronize();
  }
  reinterpret_cast<PFN_vkDestroySemaphore>(app().function("vkDestroySemaphore"))(app().device, handle, nullptr);
  app().destroy(shared);
}

TEST_F(VulkanAdopted, ABinarySemaphoreOfTheQueueHoldsOpsBack) {
  constexpr size_t count = 512;
  const AppBuffer from = app().make_buffer(count * 4, false), shared = app().make_buffer(count * 4, false);
  VkSemaphore handle = app().make_semaphore(VK_SEMAPHORE_TYPE_BINARY);
  {
    Tensor tensor = import(shared, {count});
    const Semaphore semaphore(device(), {HandleType::vk_semaphore, handle}, SemaphoreKind::binary);
    for (int round = 0; round < 5; ++round) {
      const std::vector<float> given = random(count);
      fill(from, given);
      app().submit_copy(from, shared, count * 4, handle);
      Stream::current(device()).wait(semaphore, 0, {tensor});
      ASSERT_EQ(relu(tensor).to_host<float>(), relu_of(given)) << "round " << round;
    }
    device().synchronize();
  }
  app().wait_queue();
  reinterpret_cast<PFN_vkDestroySemaphore>(app().function("vkDestroySemaphore"))(app().device, handle, nullptr);
  for (const AppBuffer& buffer : {from, shared}) app().destroy(buffer);
}

TEST_F(VulkanAdopted, RefusalsNameTheReason) {
  const AppBuffer buffer = app().make_buffer(4096, false);
  device();
  expect_error([] { adopt_device("vulkan:0", context()); }, Code::busy, {"open already"});
  expect_error(
      [&] {
        tensor_over(device(), {{HandleType::vk_buffer, buffer.buffer}, 1 << 20}, {4}, {}, DType::f32);
      },
      Code::invalid_argument, {"1048576 bytes", "but the VkBuffer needs"});
  app().destroy(buffer);
}

// Must be the last test: the device of the other tests is gone afterwards.
TEST_F(VulkanAdopted, RetiringLeavesTheVkDeviceToTheApplication) {
  device();
  retire("vulkan");
  NativeContext incomplete = context();
  incomplete.handles[2] = 0;
  expect_error([&] { adopt_device("vulkan:0", incomplete); }, Code::invalid_argument, {"VkQueue", "missing"});
  EXPECT_EQ(reinterpret_cast<PFN_vkDeviceWaitIdle>(app().function("vkDeviceWaitIdle"))(app().device), VK_SUCCESS);
  const std::vector<float> given = random(64);
  EXPECT_EQ(relu(Tensor::from<float>(given, {64}, Device("vulkan:0"))).to_host<float>(), relu_of(given));
}

}  // namespace
}  // namespace tenon::testing
