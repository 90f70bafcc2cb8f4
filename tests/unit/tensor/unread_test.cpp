// Tensors whose elements are read from elsewhere when they are first needed.
#include "core/tensor/unread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/ops/ops.h"
#include "loader/loader.h"
#include "tests/fakes/async/control.h"

namespace tenon {
namespace {

constexpr int64_t kRows = 300, kColumns = 200;
constexpr uint64_t kBytes = kRows * kColumns * sizeof(float);

// Elements on a disk that may fail, and the number of reads.
struct Disk {
  std::vector<float> elements = std::vector<float>(kRows * kColumns);
  std::atomic<int> reads{0};
  std::atomic<bool> broken{false};

  Disk() { std::iota(elements.begin(), elements.end(), 1.0f); }
  Tensor tensor(Device device = Device("cpu")) {
    return unread_tensor({kRows, kColumns}, DType::f32, device, [this](void* out) {
      ++reads;
      if (broken) return Status(Code::internal, "The disk is broken.");
      std::memcpy(out, elements.data(), kBytes);
      return Status();
    });
  }
};

TEST(UnreadTensors, TakeNoMemoryUntilSomebodyNeedsThem) {
  Disk disk;
  const Device cpu("cpu");
  const uint64_t before = cpu.memory_stats().live;
  {
    const Tensor tensor = disk.tensor();
    EXPECT_TRUE(is_unread(tensor));
    EXPECT_EQ(tensor.dims(), (Dims{kRows, kColumns}));
    EXPECT_TRUE(is_unread(slice(transpose(tensor, 0, 1), 0, 3, 5)));
    EXPECT_LT(cpu.memory_stats().live, before + kBytes / 2);
    EXPECT_EQ(disk.reads, 0);
    EXPECT_EQ(tensor.to_host<float>(), disk.elements);
    EXPECT_FALSE(is_unread(tensor));
    EXPECT_GE(cpu.memory_stats().live, before + kBytes);
    EXPECT_EQ(tensor.to_host<float>(), disk.elements);
    EXPECT_EQ(disk.reads, 1);
  }
  EXPECT_LE(cpu.memory_stats().live, before);
  disk.tensor();  // the result is never read
  EXPECT_EQ(disk.reads, 1);
}

// Every kind of access to the elements reads them, and only once.
TEST(UnreadTensors, AreReadByWhateverNeedsThem) {
  const std::pair<const char*, std::function<float(const Tensor&)>> ways[] = {
      {"an op", [](const Tensor& x) { return relu(x).to_host<float>()[7]; }},
      {"a binary op", [](const Tensor& x) { return add(x, x).to_host<float>()[7] / 2; }},
      {"an op of several dims", [](const Tensor& x) { return sum(x, {0}).to_host<float>()[0] > 0 ? 8.0f : 0.0f; }},
      {"matmul", [](const Tensor& x) { return matmul(x, transpose(x, 0, 1)).to_host<float>()[0] > 0 ? 8.0f : 0.0f; }},
      {"a view", [](const Tensor& x) { return contiguous(transpose(x, 0, 1)).to_host<float>()[7 * kRows]; }},
      {"a part", [](const Tensor& x) { return slice(x, 1, 7, 8).to_host<float>()[0]; }},
      {"an element",
       [](const Tensor& x) { return static_cast<float>(slice(slice(x, 0, 0, 1), 1, 7, 8).item().to_double()); }},
      {"the address", [](const Tensor& x) { return static_cast<const float*>(x.data())[7]; }},
      {"waiting", [](const Tensor& x) { return x.wait(), static_cast<const float*>(x.data())[7]; }},
      {"access",
       [](const Tensor& x) {
         float seen = 0;
         x.access(Access::read, [&](void* data) { seen = static_cast<const float*>(data)[7]; });
         return seen;
       }},
      {"a write", [](Tensor x) { return add_(x, Scalar(1)).to_host<float>()[7] - 1; }},
      {"a write of a part",
       [](const Tensor& x) {
         Tensor part = slice(x, 0, 1, 2);
         fill_(part, Scalar(3));
         return x.to_host<float>()[7];
       }},
      {"copying into it",
       [](Tensor x) {
         return copy_(x, full({kRows, kColumns}, Scalar(8))).to_host<float>()[7];
       }},
      {"copying from it",
       [](const Tensor& x) {
         Tensor to = full({kRows, kColumns}, Scalar(0.0f));
         return copy_(to, x).to_host<float>()[7];
       }},
  };
  for (const auto& [name, way] : ways) {
    Disk disk;
    const Tensor tensor = disk.tensor();
    EXPECT_EQ(way(tensor), 8.0f) << name;
    EXPECT_EQ(disk.reads, 1) << name;
    EXPECT_FALSE(is_unread(tensor)) << name;
  }
}

TEST(UnreadTensors, AreReadOnceByManyThreads) {
  for (int round = 0; round < 20; ++round) {
    Disk disk;
    const Tensor tensor = disk.tensor();
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const std::vector<float> found = i % 2 == 0 ? relu(tensor).to_host<float>() : tensor.to_host<float>();
        right += found == disk.elements;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 4);
    EXPECT_EQ(disk.reads, 1);
  }
}

TEST(UnreadTensors, ThatCannotBeReadAreAnErrorAndTheNextUseTriesAgain) {
  Disk disk;
  const Tensor tensor = disk.tensor();
  const uint64_t before = Device("cpu").memory_stats().live;
  disk.broken = true;
  for (const auto& use :
       {std::function<void()>([&] { relu(tensor); }), std::function<void()>([&] { tensor.data(); })}) {
    try {
      use();
      ADD_FAILURE() << "nothing failed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::internal);
      EXPECT_NE(std::string(error.what()).find("The disk is broken."), std::string::npos) << error.what();
    }
  }
  EXPECT_TRUE(is_unread(tensor));
  EXPECT_LE(Device("cpu").memory_stats().live, before);
  disk.broken = false;
  EXPECT_EQ(relu(tensor).to_host<float>(), disk.elements);
}

TEST(UnreadTensors, OfAnAsynchronousDeviceAreReadAtOnce) {
  static const bool registered = [] {
    loader::register_provider("unread", fakes::async_query);
    return true;
  }();
  static_cast<void>(registered);
  fakes::async_control().reset();
  fakes::async_control().memory = uint64_t{16} << 20;
  {
    Disk disk;
    const Tensor tensor = disk.tensor(Device("unread:0"));
    EXPECT_FALSE(is_unread(tensor));
    EXPECT_EQ(disk.reads, 1);
    EXPECT_EQ(tensor.to_host<float>(), disk.elements);
    disk.broken = true;
    EXPECT_THROW(disk.tensor(Device("unread:0")), Error);
  }
  retire("unread");
  fakes::async_control().reset();
}

}  // namespace
}  // namespace tenon
