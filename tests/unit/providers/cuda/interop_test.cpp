// Objects of an application and of other APIs, on the fake driver: addresses, memory files, streams, semaphores and
// events.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/fakes/async/foreign.h"
#include "tests/unit/providers/cuda/fixture.h"

namespace tenon::provider::cuda {
namespace {

using fakes::Foreign;

#define CALL(name) reinterpret_cast<decltype(&::name)>(driver_function(#name))

void* driver_function(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return dlsym(library, name);
}

int open_descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// The context of the application, current on this thread while it lives.
class InContext {
 public:
  explicit InContext(CUdevice device) : device_(device) {
    CUcontext context = nullptr;
    EXPECT_EQ(CALL(cuDevicePrimaryCtxRetain)(&context, device), CUDA_SUCCESS);
    EXPECT_EQ(CALL(cuCtxPushCurrent_v2)(context), CUDA_SUCCESS);
  }
  ~InContext() {
    CUcontext popped = nullptr;
    CALL(cuCtxPopCurrent_v2)(&popped);
    CALL(cuDevicePrimaryCtxRelease_v2)(device_);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  const CUdevice device_;
};

std::vector<float> relu_of(std::vector<float> values) {
  for (float& value : values) value = std::max(value, 0.0f);
  return values;
}

class FakeCudaInterop : public FakeCuda {
 protected:
  static ep_import_desc desc_of(int32_t type, uint64_t handle, uint64_t size = 0, int32_t semaphore = 0) {
    ep_import_desc desc{};
    desc.struct_size = sizeof desc;
    desc.struct_type = EP_STRUCT_IMPORT_DESC;
    desc.handle_type = type;
    desc.handle = handle;
    desc.size = size;
    desc.semaphore = semaphore;
    return desc;
  }
  static uint64_t handle_of(const Foreign& file) { return static_cast<uint64_t>(file.fd()); }

  ep_status import_memory(const ep_import_desc& desc, ep_memory** out) {
    ep_error* error = nullptr;
    return cuda().ops.memory_import(cuda().device, &desc, out, &error);
  }
  ep_stream* import_stream(CUstream handle) {
    const ep_import_desc desc = desc_of(EP_HANDLE_CUDA_STREAM, reinterpret_cast<uint64_t>(handle));
    ep_stream* stream = nullptr;
    ep_error* error = nullptr;
    EXPECT_EQ(cuda().ops.stream_import(cuda().device, &desc, &stream, &error), EP_STATUS_OK) << cuda().host.sentence();
    return stream;
  }
  ep_semaphore* import_semaphore(int32_t type, uint64_t handle, int32_t kind) {
    const ep_import_desc desc = desc_of(type, handle, 0, kind);
    ep_semaphore* semaphore = nullptr;
    ep_error* error = nullptr;
    EXPECT_EQ(cuda().ops.semaphore_import(cuda().device, &desc, &semaphore, &error), EP_STATUS_OK)
        << cuda().host.sentence();
    return semaphore;
  }
  // relu of `src` into `dst` on the stream of the fixture.
  void relu(ep_memory* dst, ep_memory* src, int64_t count) {
    ep_primitive_desc desc = descriptor(
        EP_PRIMITIVE_unary, {dense(EP_ROLE_DST, EP_DTYPE_f32, {count}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {count})});
    desc.attributes.unary.op = EP_UNARY_relu;
    EXPECT_EQ(launch(desc, {dst, src}), EP_STATUS_OK) << cuda().host.sentence();
  }
  void finish() { EXPECT_EQ(cuda().ops.stream_synchronize(cuda().stream, nullptr), EP_STATUS_OK); }
  void refuses(ep_status answer, ep_status expected, const std::string& part) {
    EXPECT_EQ(answer, expected) << cuda().host.sentence();
    EXPECT_NE(cuda().host.sentence().find(part), std::string::npos) << cuda().host.sentence();
  }
};

TEST_F(FakeCudaInterop, AnAddressIsReadAndWrittenInPlaceAndStaysTheApplications) {
  const InContext context(0);
  const std::vector<float> given = random_floats(300, 5);
  CUdeviceptr address = 0;
  ASSERT_EQ(CALL(cuMemAlloc_v2)(&address, 1200), CUDA_SUCCESS);
  std::memcpy(reinterpret_cast<void*>(address), given.data(), 1200);  // the fake's memory is the host's
  ep_memory* memory = nullptr;
  ASSERT_EQ(import_memory(desc_of(EP_HANDLE_CUDA_POINTER, address, 1200), &memory), EP_STATUS_OK)
      << cuda().host.sentence();
  EXPECT_EQ(get<float>(memory, 300), given);
  relu(memory, memory, 300);
  finish();
  std::vector<float> seen(300);
  std::memcpy(seen.data(), reinterpret_cast<const void*>(address), 1200);
  EXPECT_EQ(seen, relu_of(given));
  cuda().ops.memory_free(cuda().device, memory);
  EXPECT_EQ(CALL(cuMemFree_v2)(address), CUDA_SUCCESS) << "it was still the application's";
}

TEST_F(FakeCudaInterop, MemoryBehindAFileDescriptorIsReadAndWrittenInPlace) {
  const std::vector<float> given = random_floats(256, 6);
  const int before = open_descriptors();
  {
    const Foreign file = Foreign::create(1024);
    std::memcpy(file.data(), given.data(), 1024);
    ep_memory* memory = nullptr;
    ASSERT_EQ(import_memory(desc_of(EP_HANDLE_OPAQUE_FD, handle_of(file), 1024), &memory), EP_STATUS_OK)
        << cuda().host.sentence();
    EXPECT_NE(fcntl(file.fd(), F_GETFD), -1) << "the file descriptor stays the caller's";
    ep_memory* result = block(1024);
    relu(result, memory, 256);
    EXPECT_EQ(get<float>(result, 256), relu_of(given));
    put(memory, relu_of(given).data(), 1024);
    EXPECT_EQ(std::memcmp(file.data(), relu_of(given).data(), 1024), 0);
    cuda().ops.memory_free(cuda().device, memory);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(FakeCudaInterop, AStreamOfTheApplicationOrdersTheWorkOfBoth) {
  const InContext context(0);
  fake().delay_us = 500;
  CUstream theirs = nullptr;
  ASSERT_EQ(CALL(cuStreamCreateWithPriority)(&theirs, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  ep_stream* stream = import_stream(theirs);
  ep_memory* first = block(4096);
  ep_memory* second = block(4096);
  uint64_t from = 0;
  uint64_t to = 0;
  ASSERT_EQ(cuda().ops.memory_native_handle(cuda().device, first, &from, nullptr), EP_STATUS_OK);
  ASSERT_EQ(cuda().ops.memory_native_handle(cuda().device, second, &to, nullptr), EP_STATUS_OK);
  for (unsigned char value = 1; value < 50; ++value) {
    ASSERT_EQ(CALL(cuMemsetD8Async)(from, value, 4096, theirs), CUDA_SUCCESS);
    ASSERT_EQ(cuda().ops.copy(stream, {second, 0}, {first, 0}, 4096, nullptr), EP_STATUS_OK);
    ASSERT_EQ(CALL(cuMemsetD8Async)(from, 0, 4096, theirs), CUDA_SUCCESS);
  }
  ASSERT_EQ(cuda().ops.stream_synchronize(stream, nullptr), EP_STATUS_OK);
  const auto* seen = reinterpret_cast<const unsigned char*>(to);
  EXPECT_TRUE(std::all_of(seen, seen + 4096, [](unsigned char byte) { return byte == 49; }));
  const auto* cleared = reinterpret_cast<const unsigned char*>(from);
  EXPECT_TRUE(std::all_of(cleared, cleared + 4096, [](unsigned char byte) { return byte == 0; }));
  cuda().ops.stream_destroy(cuda().device, stream);
  EXPECT_EQ(CALL(cuMemsetD8Async)(from, 1, 16, theirs), CUDA_SUCCESS) << "it was still the application's";
  EXPECT_EQ(CALL(cuStreamSynchronize)(theirs), CUDA_SUCCESS);
  CALL(cuStreamDestroy_v2)(theirs);
}

TEST_F(FakeCudaInterop, SemaphoresHoldWorkBackAndTellWhenItIsDone) {
  const Foreign file = Foreign::create(1024), timeline = Foreign::create(8), binary = Foreign::create(8);
  ep_memory* memory = nullptr;
  ASSERT_EQ(import_memory(desc_of(EP_HANDLE_OPAQUE_FD, handle_of(file), 1024), &memory), EP_STATUS_OK);
  ep_semaphore* counts = import_semaphore(EP_HANDLE_OPAQUE_FD, handle_of(timeline), EP_SEMAPHORE_TIMELINE);
  ep_semaphore* flag = import_semaphore(EP_HANDLE_OPAQUE_FD, handle_of(binary), EP_SEMAPHORE_BINARY);
  for (uint64_t round = 0; round < 20; ++round) {
    ASSERT_EQ(cuda().ops.stream_wait_semaphore(cuda().stream, counts, 2 * round + 1, nullptr), EP_STATUS_OK);
    relu(memory, memory, 256);
    ASSERT_EQ(cuda().ops.stream_signal_semaphore(cuda().stream, counts, 2 * round + 2, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cuda().ops.stream_signal_semaphore(cuda().stream, flag, 0, nullptr), EP_STATUS_OK);
    const std::vector<float> given = random_floats(256, static_cast<uint32_t>(round + 9));
    if (round % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::memcpy(file.data(), given.data(), 1024);
    timeline.counter() = 2 * round + 1;
    while (binary.counter() == 0) std::this_thread::yield();
    binary.counter() = 0;
    ASSERT_EQ(timeline.counter().load(), 2 * round + 2);
    ASSERT_EQ(std::memcmp(file.data(), relu_of(given).data(), 1024), 0) << "round " << round;
  }
  finish();
  cuda().ops.semaphore_destroy(cuda().device, counts);
  cuda().ops.semaphore_destroy(cuda().device, flag);
  cuda().ops.memory_free(cuda().device, memory);
}

TEST_F(FakeCudaInterop, AnEventOfTheApplicationHoldsWorkBackAndIsNotSignalled) {
  const InContext context(0);
  CUstream theirs = nullptr;
  CUevent fired = nullptr;
  ASSERT_EQ(CALL(cuStreamCreateWithPriority)(&theirs, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  ASSERT_EQ(CALL(cuEventCreate)(&fired, 0), CUDA_SUCCESS);
  ep_memory* memory = block(4096);
  uint64_t address = 0;
  ASSERT_EQ(cuda().ops.memory_native_handle(cuda().device, memory, &address, nullptr), EP_STATUS_OK);
  fake().delay_us = 3000;
  ASSERT_EQ(CALL(cuMemsetD8Async)(address, 3, 4096, theirs), CUDA_SUCCESS);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(CALL(cuMemsetD8Async)(address, 7, 4096, theirs), CUDA_SUCCESS);
  ASSERT_EQ(CALL(cuEventRecord)(fired, theirs), CUDA_SUCCESS);
  ep_semaphore* event = import_semaphore(EP_HANDLE_CUDA_EVENT, reinterpret_cast<uint64_t>(fired), EP_SEMAPHORE_EVENT);
  ASSERT_EQ(cuda().ops.stream_wait_semaphore(cuda().stream, event, 0, nullptr), EP_STATUS_OK);
  EXPECT_EQ(get<unsigned char>(memory, 4096), std::vector<unsigned char>(4096, 7));
  ep_error* error = nullptr;
  refuses(cuda().ops.stream_signal_semaphore(cuda().stream, event, 0, &error), EP_STATUS_UNSUPPORTED, "not signalled");
  cuda().ops.semaphore_destroy(cuda().device, event);
  CALL(cuEventDestroy_v2)(fired);
  CALL(cuStreamDestroy_v2)(theirs);
}

TEST_F(FakeCudaInterop, RefusalsNameTheReasonAndKeepNothing) {
  CUdeviceptr mine = 0;
  CUdeviceptr others = 0;
  CUstream foreign = nullptr;
  const InContext context(0);
  ASSERT_EQ(CALL(cuMemAlloc_v2)(&mine, 1024), CUDA_SUCCESS);
  {
    const InContext other(1);
    ASSERT_EQ(CALL(cuMemAlloc_v2)(&others, 1024), CUDA_SUCCESS);
    ASSERT_EQ(CALL(cuStreamCreateWithPriority)(&foreign, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  }
  const Foreign file = Foreign::create(512), shorter = Foreign::create(4);
  const int64_t objects = fake().objects;
  const int64_t held = cuda().host.held();
  const int descriptors = open_descriptors();
  ep_memory* memory = nullptr;
  const auto pointer = [&](uint64_t address, uint64_t size) {
    return import_memory(desc_of(EP_HANDLE_CUDA_POINTER, address, size), &memory);
  };
  int local = 0;
  refuses(pointer(reinterpret_cast<uint64_t>(&local), 4), EP_STATUS_INVALID_ARGUMENT, "CUDA does not know the address");
  refuses(pointer(others, 1024), EP_STATUS_INVALID_ARGUMENT, "memory of device 1");
  refuses(pointer(mine, 1025), EP_STATUS_INVALID_ARGUMENT, "only 1024 bytes follow");
  refuses(pointer(mine + 16, 16), EP_STATUS_UNSUPPORTED, "not a multiple of 256");
  refuses(pointer(0, 16), EP_STATUS_INVALID_ARGUMENT, "NULL");
  refuses(import_memory(desc_of(EP_HANDLE_OPAQUE_FD, handle_of(file), 1024), &memory), EP_STATUS_INVALID_ARGUMENT,
          "does not accept the file descriptor");
  ep_import_desc elsewhere = desc_of(EP_HANDLE_OPAQUE_FD, handle_of(file), 512);
  elsewhere.uuid[1] = 99;
  refuses(import_memory(elsewhere, &memory), EP_STATUS_INVALID_ARGUMENT, "UUID");
  ep_error* error = nullptr;
  ep_stream* stream = nullptr;
  const ep_import_desc stream_desc = desc_of(EP_HANDLE_CUDA_STREAM, reinterpret_cast<uint64_t>(foreign));
  refuses(cuda().ops.stream_import(cuda().device, &stream_desc, &stream, &error), EP_STATUS_INVALID_ARGUMENT,
          "another context");
  ep_semaphore* semaphore = nullptr;
  const ep_import_desc broken = desc_of(EP_HANDLE_OPAQUE_FD, handle_of(shorter), 0, EP_SEMAPHORE_TIMELINE);
  refuses(cuda().ops.semaphore_import(cuda().device, &broken, &semaphore, &error), EP_STATUS_INVALID_ARGUMENT,
          "as a semaphore");
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(fake().objects, objects);
  EXPECT_EQ(cuda().host.held(), held);
  EXPECT_EQ(open_descriptors(), descriptors);
  CALL(cuMemFree_v2)(mine);
  CALL(cuMemFree_v2)(others);
  CALL(cuStreamDestroy_v2)(foreign);
}

}  // namespace
}  // namespace tenon::provider::cuda
