// Native handles on the asynchronous fake: memory files play memory and semaphores of another API.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/ops/ops.h"
#include "core/tensor/native.h"
#include "core/tensor/stream.h"
#include "tests/fakes/async/foreign.h"
#include "tests/unit/tensor/in_flight.h"

namespace tenon::testing {
namespace {

using fakes::Foreign;
using std::chrono::milliseconds;

std::vector<float> relu_of(std::vector<float> values) {
  for (float& value : values) value = std::max(value, 0.0f);
  return values;
}

int open_descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

class Native : public InFlight {
 protected:
  Native() { fakes::async_control().fail_import = fakes::async_control().fail_semaphore = -1; }

  // A file of the application with random floats.
  Foreign file_of(size_t count) {
    Foreign file = Foreign::create(count * sizeof(float));
    write(file, random_floats(random_, count));
    return file;
  }
  static void write(const Foreign& file, const std::vector<float>& values) {
    std::memcpy(file.data(), values.data(), values.size() * sizeof(float));
  }
  static std::vector<float> read(const Foreign& file) {
    std::vector<float> values(file.size() / sizeof(float));
    std::memcpy(values.data(), file.data(), file.size());
    return values;
  }
  static NativeMemory memory_of(const Foreign& file) {
    NativeMemory memory;
    memory.handle = {HandleType::opaque_fd, file.fd()};
    memory.bytes = file.size();
    return memory;
  }
  static Tensor tensor_of(const Foreign& file, const Dims& dims) {
    return tensor_over(device(), memory_of(file), dims, {}, DType::f32);
  }
  static Semaphore semaphore_of(const Foreign& file, SemaphoreKind kind) {
    return Semaphore(device(), {HandleType::opaque_fd, file.fd()}, kind);
  }
  static void wait_until(const Foreign& file, uint64_t value) {
    while (file.counter().load() < value) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
};

TEST_F(Native, MemoryIsReadAndWrittenInPlace) {
  const Foreign file = file_of(60);
  const std::vector<float> given = read(file);
  Tensor tensor = tensor_of(file, {5, 12});
  EXPECT_EQ(tensor.device(), device());
  EXPECT_EQ(relu(tensor).to_host<float>(), relu_of(given));
  EXPECT_EQ(read(file), given);
  relu_(tensor);
  tensor.wait();
  EXPECT_EQ(read(file), relu_of(given));
  write(file, given);  // no work of Tenon is in flight
  EXPECT_EQ(tensor.to_host<float>(), given);
}

TEST_F(Native, OffsetAndStridesSayWhereTheElementsLie) {
  const Foreign file = file_of(200);
  const std::vector<float> given = read(file);
  const Dims dims{3, 4}, strides{20, 3};
  const Tensor tensor = tensor_over(device(), memory_of(file), dims, strides, DType::f32, 7 * sizeof(float));
  const std::vector<float> expected = walk({given.begin() + 7, given.end()}, dims, strides);
  EXPECT_EQ(tensor.to_host<float>(), expected);
  EXPECT_EQ(relu(tensor).to_host<float>(), relu_of(expected));
}

TEST_F(Native, TheHandleStaysTheCallersAndTheImportLivesOn) {
  const int before = open_descriptors();
  int returned = 0;
  {
    Foreign file = file_of(16);
    const std::vector<float> given = read(file);
    Tensor tensor = tensor_over(device(), memory_of(file), {16}, {}, DType::f32, 0, [&] { ++returned; });
    EXPECT_NE(fcntl(file.fd(), F_GETFD), -1);
    file = Foreign();  // closes the test's own file
    const Tensor view = slice(tensor, 0, 4, 8);
    tensor = Tensor();
    EXPECT_EQ(view.to_host<float>(), std::vector<float>(given.begin() + 4, given.begin() + 8));
    EXPECT_EQ(returned, 0);
    EXPECT_EQ(fakes::async_control().imports, 1);
  }
  while (returned == 0) std::this_thread::yield();
  settle();
  EXPECT_EQ(returned, 1);
  EXPECT_EQ(fakes::async_control().imports, 0);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(Native, RefusalsNameTheValuesAndKeepNothing) {
  const Foreign file = file_of(16);
  const int before = open_descriptors();
  bool deleted = false;
  const auto import = [&](NativeMemory memory, const Dims& dims, uint64_t offset = 0, const Dims& strides = {}) {
    return [&deleted, memory, dims, offset, strides] {
      tensor_over(device(), memory, dims, strides, DType::f32, offset, [&deleted] { deleted = true; });
    };
  };
  const NativeMemory good = memory_of(file);
  NativeMemory bad = good;
  bad.handle.type = HandleType::cl_mem;
  expect_error(import(bad, {16}), Code::unsupported, {"cl_mem", "opaque_fd and cuda_pointer"});
  bad.handle.type = HandleType::host_pointer;
  expect_error(import(bad, {16}), Code::unsupported, {"host_pointer"});
  bad = good;
  bad.bytes = 0;
  expect_error(import(bad, {16}), Code::invalid_argument, {"0 bytes"});
  bad.bytes = 65;
  expect_error(import(bad, {16}), Code::invalid_argument, {"fewer than 65 bytes"});
  bad = good;
  bad.handle = {HandleType::opaque_fd, -1};
  expect_error(import(bad, {16}), Code::invalid_argument, {"-1", "not an open file descriptor"});
  const int closed = dup(file.fd());
  close(closed);
  bad.handle = {HandleType::opaque_fd, closed};
  expect_error(import(bad, {16}), Code::invalid_argument, {std::to_string(closed), "not an open file descriptor"});
  bad.handle = {HandleType::cuda_pointer, uint64_t{0}};
  expect_error(import(bad, {16}), Code::invalid_argument, {"cuda_pointer", "NULL"});
  bad = good;
  bad.uuid[3] = 7;
  expect_error(import(bad, {16}), Code::invalid_argument, {"00000007", "UUID"});
  bad = good;
  bad.dedicated = true;
  expect_error(import(bad, {16}), Code::unsupported, {"flags 0x1"});
  expect_error(import(good, {17}), Code::invalid_argument, {"68 bytes", "64 bytes"});
  expect_error(import(good, {16}, 4), Code::invalid_argument, {"64 bytes from offset 4"});
  expect_error(import(good, {1}, 2), Code::invalid_argument, {"offset 2", "multiple of 4"});
  expect_error(import(good, {2, 2}, 0, {-1, 1}), Code::invalid_argument, {"negative"});
  EXPECT_FALSE(deleted);
  EXPECT_EQ(fakes::async_control().imports, 0);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(Native, AnImportThatFailsKeepsNothing) {
  const Foreign file = file_of(16);
  const int before = open_descriptors();
  fakes::async_control().fail_import = 0;
  expect_error([&] { tensor_of(file, {16}); }, Code::out_of_device_memory,
               {"told to fail", "importing memory on async:0"});
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(tensor_of(file, {16}).to_host<float>(), read(file));
}

TEST_F(Native, AWaitHoldsBackTheOpsBehindIt) {
  const Foreign file = file_of(32), counter = Foreign::create(8);
  const Semaphore semaphore = semaphore_of(counter, SemaphoreKind::timeline);
  const Tensor tensor = tensor_of(file, {32});
  for (uint64_t round = 1; round <= 20; ++round) {
    Stream::current(device()).wait(semaphore, round, {tensor});
    const Tensor result = relu(tensor);
    const std::vector<float> given = random_floats(random_, 32);
    if (round % 4 == 0) std::this_thread::sleep_for(milliseconds(2));
    write(file, given);
    counter.counter().store(round);
    ASSERT_EQ(result.to_host<float>(), relu_of(given)) << "round " << round;
  }
}

TEST_F(Native, AWaitThatAcquiresCountsForEveryStreamAndForReads) {
  const Foreign file = file_of(32), counter = Foreign::create(8);
  const Semaphore semaphore = semaphore_of(counter, SemaphoreKind::timeline);
  const Tensor tensor = tensor_of(file, {32});
  const Stream other(device());
  for (uint64_t round = 1; round <= 20; ++round) {
    other.wait(semaphore, round, {tensor});
    const Tensor elsewhere = relu(tensor);  // a result of the current stream
    const std::vector<float> given = random_floats(random_, 32);
    std::thread application([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      write(file, given);
      counter.counter().store(round);
    });
    EXPECT_EQ(tensor.to_host<float>(), given) << "round " << round;
    EXPECT_EQ(elsewhere.to_host<float>(), relu_of(given)) << "round " << round;
    application.join();
  }
}

TEST_F(Native, ASignalComesAfterEveryUseOfItsTensors) {
  fakes::async_control().delay_us = 300;
  const Foreign file = file_of(64), counter = Foreign::create(8);
  const Semaphore semaphore = semaphore_of(counter, SemaphoreKind::timeline);
  Tensor tensor = tensor_of(file, {64});
  const Stream first(device()), second(device());
  for (uint64_t round = 1; round <= 20; ++round) {
    const std::vector<float> given = random_floats(random_, 64);
    {
      const StreamScope scope(first);
      tensor.copy_from(given.data());
      relu_(tensor);
    }
    second.signal(semaphore, round, {tensor});
    wait_until(counter, round);
    ASSERT_EQ(read(file), relu_of(given)) << "round " << round;
  }
}

TEST_F(Native, BinarySemaphoresHandMemoryToAndFro) {
  const Foreign file = file_of(16), ours = Foreign::create(8), theirs = Foreign::create(8);
  const Semaphore to_us = semaphore_of(ours, SemaphoreKind::binary),
                  to_them = semaphore_of(theirs, SemaphoreKind::binary);
  Tensor tensor = tensor_of(file, {16});
  const Stream stream = Stream::current(device());
  for (int round = 0; round < 30; ++round) {
    const std::vector<float> given = random_floats(random_, 16);
    write(file, given);
    ours.counter().store(1);
    stream.wait(to_us, 0, {tensor});
    relu_(tensor);
    stream.signal(to_them, 0, {tensor});
    wait_until(theirs, 1);
    theirs.counter().store(0);
    ASSERT_EQ(read(file), relu_of(given)) << "round " << round;
    ASSERT_EQ(ours.counter().load(), 0u) << "the wait takes the signal";
  }
}

TEST_F(Native, ASignalComesThoughAnOpFailed) {
  const Foreign file = file_of(16), counter = Foreign::create(8);
  const Semaphore semaphore = semaphore_of(counter, SemaphoreKind::timeline);
  Tensor tensor = tensor_of(file, {16});
  fakes::async_control().fail_launch = 0;
  relu_(tensor);
  Stream::current(device()).signal(semaphore, 3, {tensor});
  wait_until(counter, 3);
  EXPECT_FALSE(error_of([&] { tensor.wait(); }).ok());
  Stream::current(device()).acquire({tensor});  // uses the data that the application wrote
  EXPECT_EQ(tensor.to_host<float>(), read(file));
}

TEST_F(Native, AWaitThatTheDeviceRefusesPoisonsWhatItAcquires) {
  const Foreign file = file_of(16), counter = Foreign::create(8);
  const Semaphore semaphore = semaphore_of(counter, SemaphoreKind::timeline);
  std::vector<Tensor> tensors;  // more tensors than one instruction holds
  for (int i = 0; i < 20; ++i) tensors.push_back(tensor_of(file, {16}));
  fakes::async_control().fail_semaphore = 0;
  Stream::current(device()).wait(semaphore, 1, tensors);
  for (const Tensor& tensor : tensors) {
    expect_error([&] { relu(tensor).wait(); }, Code::out_of_host_memory, {"told to fail", "wait for a semaphore"});
  }
}

TEST_F(Native, ASemaphoreLivesUntilItsWorkIsDone) {
  const Foreign file = file_of(16), counter = Foreign::create(8);
  Tensor tensor = tensor_of(file, {16});
  Stream::current(device()).wait(semaphore_of(counter, SemaphoreKind::timeline), 1, {tensor});
  EXPECT_EQ(fakes::async_control().semaphores, 1);
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(fakes::async_control().semaphores, 1) << "the wait is pending";
  counter.counter().store(1);
  tensor.wait();
  settle();
  EXPECT_EQ(fakes::async_control().semaphores, 0);
}

TEST_F(Native, SemaphoresRefuseWhatTheyCannotMean) {
  const Foreign counter = Foreign::create(8), shorter = Foreign::create(4);
  const Stream stream = Stream::current(device());
  expect_error([&] { semaphore_of(counter, SemaphoreKind::event); }, Code::invalid_argument,
               {"opaque_fd cannot have the kind event"});
  expect_error([&] { semaphore_of(shorter, SemaphoreKind::timeline); }, Code::invalid_argument, {"not a semaphore"});
  expect_error(
      [&] {
        Semaphore(device(), {HandleType::vk_semaphore, 1}, SemaphoreKind::binary);
      },
      Code::unsupported, {"vk_semaphore", "opaque_fd"});
  expect_error(
      [&] {
        Semaphore(Device::host(), {HandleType::opaque_fd, counter.fd()}, SemaphoreKind::binary);
      },
      Code::unsupported, {"none"});
  expect_error([&] { stream.wait(Semaphore()); }, Code::invalid_argument, {"no semaphore"});
  const Semaphore binary = semaphore_of(counter, SemaphoreKind::binary);
  expect_error([&] { stream.wait(binary, 4); }, Code::invalid_argument, {"value is 4"});
  expect_error([&] { Stream::standard(Device::host()).wait(binary); }, Code::invalid_argument, {"async:0", "cpu"});
  const Semaphore timeline = semaphore_of(counter, SemaphoreKind::timeline);
  expect_error([&] { stream.signal(timeline, 0); }, Code::invalid_argument, {"value is 0", "greater than 0"});
  stream.signal(timeline, 7);
  expect_error([&] { stream.signal(timeline, 7); }, Code::invalid_argument, {"value is 7", "greater than 7"});
  const Tensor foreign = Tensor::empty({4}, DType::f32, Device::host());
  expect_error([&] { stream.wait(timeline, 1, {foreign}); }, Code::invalid_argument, {"a tensor of cpu"});
  EXPECT_EQ(fakes::async_control().semaphores, 2);
}

TEST_F(Native, FlushReturnsWhenTheDeviceHasTheOps) {
  const Tensor tensor = Tensor::from<float>(random_floats(random_, 16), {16}, device());
  std::atomic<bool> go{false}, flushed{false};
  tensor.access(Access::read_write, [&](void*) {
    while (!go) std::this_thread::sleep_for(std::chrono::microseconds(50));
  });
  const uint64_t before = fakes::async_control().launches;
  const Tensor result = relu(tensor);
  std::thread flusher([&] {
    Stream::current(device()).flush();
    flushed = true;
    EXPECT_GT(fakes::async_control().launches, before);
  });
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_FALSE(flushed) << "the op waits for a function of the application";
  go = true;
  flusher.join();
  EXPECT_EQ(result.to_host<float>(), relu_of(tensor.to_host<float>()));
}

TEST_F(Native, APlaceIsAHandleForTheOtherApi) {
  const std::vector<float> given = random_floats(random_, 40);
  Tensor tensor = Tensor::from<float>(given, {4, 10}, device());
  const Tensor part = slice(tensor, 0, 2, 3);
  const NativePlace place = native_place(part);
  EXPECT_EQ(place.handle.type, HandleType::cuda_pointer);
  std::vector<float> seen(10);
  std::memcpy(seen.data(), reinterpret_cast<const char*>(place.handle.value) + place.offset, 40);
  EXPECT_EQ(seen, std::vector<float>(given.begin() + 20, given.begin() + 30));
  NativeMemory memory{place.handle, place.offset + 40};
  Tensor again = tensor_over(device(), memory, {10}, {}, DType::f32, place.offset);
  relu_(again);
  again.wait();
  EXPECT_EQ(part.to_host<float>(), relu_of(seen));
  if (native_place(Tensor::empty({2}, DType::f32, Device::host())).handle.type != HandleType::host_pointer) {
    ADD_FAILURE() << "the memory of the cpu is host memory";
  }
}

TEST_F(Native, HostPointersServeTheHostDevice) {
  std::vector<float> lent = random_floats(random_, 12);
  const std::vector<float> given = lent;
  bool returned = false;
  {
    Tensor tensor = tensor_over(Device::host(), {{HandleType::host_pointer, lent.data()}, 48}, {12}, {}, DType::f32, 0,
                                [&] { returned = true; });
    EXPECT_EQ(tensor.data(), lent.data());
    relu_(tensor);
    Stream::current(Device::host()).release({tensor});
    EXPECT_EQ(lent, relu_of(given));
    lent[0] = 5;
    Stream::current(Device::host()).acquire({tensor});
    Stream::current(Device::host()).flush();
    EXPECT_EQ(tensor.to_host<float>()[0], 5);
  }
  EXPECT_TRUE(returned);
  expect_error(
      [] {
        tensor_over(Device::host(), {{HandleType::host_pointer, nullptr}, 48}, {12}, {}, DType::f32);
      },
      Code::invalid_argument, {"data pointer is null"});
}

TEST_F(Native, AProviderIsNotRetiredUnderASemaphore) {
  loader::register_provider("retiring", fakes::async_query);
  const Foreign counter = Foreign::create(8);
  {
    const Semaphore semaphore(Device("retiring:0"), {HandleType::opaque_fd, counter.fd()}, SemaphoreKind::timeline);
    expect_error([] { retire("retiring"); }, Code::busy, {"1 imported semaphores of retiring:0"});
  }
  retire("retiring");
  EXPECT_EQ(fakes::async_control().semaphores, 0);
}

TEST_F(Native, ADeviceIsAdoptedOnceAndOnlyInAContextThatItKnows) {
  int context = 0;
  device();
  expect_error([&] { adopt_device("async:0", NativeContext::opencl(&context)); }, Code::busy, {"async:0 is open"});
  expect_error([&] { adopt_device("async:1", NativeContext::opencl(&context)); }, Code::unsupported,
               {"async:1", "cl_context", "none"});
}

}  // namespace
}  // namespace tenon::testing
