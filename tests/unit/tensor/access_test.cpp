// Tensor::access, and waits for streams and devices, as a program uses them.
#include <atomic>
#include <stdexcept>

#include "core/ops/ops.h"
#include "core/tensor/stream.h"
#include "tests/unit/tensor/in_flight.h"

namespace tenon::testing {
namespace {

class AccessTensor : public InFlight {};

// The rows of a transposed matrix: its elements are strided, with other elements in between.
TEST_F(AccessTensor, GivesStridedElementsWhereStridesSay) {
  const std::vector<float> values = random_floats(random_, 12 * 9);
  for (Device on : {Device("cpu"), device()}) {
    const Tensor x = Tensor::from<float>(values, {12, 9}, on);
    const Tensor part = slice(transpose(x, 0, 1), 1, 2, 8);
    ASSERT_FALSE(part.contiguous());
    std::vector<float> seen;
    part.access(Access::read | Access::write, [&seen, dims = part.dims(), strides = part.strides()](void* data) {
      auto* elements = static_cast<float*>(data);
      for (int64_t i = 0; i < dims[0]; ++i) {
        for (int64_t k = 0; k < dims[1]; ++k) {
          float& element = elements[i * strides[0] + k * strides[1]];
          seen.push_back(element);
          element *= 2;
        }
      }
    });
    on.synchronize();
    std::vector<float> wanted = values;
    std::vector<float> wanted_seen;
    for (size_t column = 0; column < 9; ++column) {
      for (size_t row = 2; row < 8; ++row) {
        wanted_seen.push_back(values[row * 9 + column]);
        wanted[row * 9 + column] *= 2;
      }
    }
    EXPECT_EQ(seen, wanted_seen) << on.spelling();
    EXPECT_EQ(x.to_host<float>(), wanted) << on.spelling();
  }
}

TEST_F(AccessTensor, WritingAloneFillsAFreshTensor) {
  poison(50);
  for (Device on : {Device("cpu"), device()}) {
    const Tensor x = Tensor::empty({50}, DType::f32, on);
    x.access(Access::write, [](void* data) { std::fill_n(static_cast<float*>(data), 50, -2.5f); });
    EXPECT_EQ(relu(neg(x)).to_host<float>(), std::vector<float>(50, 2.5f)) << on.spelling();
  }
}

TEST_F(AccessTensor, RefusesToWriteThroughAnExpandedView) {
  const Tensor x = Tensor::from<float>(random_floats(random_, 4), {4, 1}, device());
  const Tensor wide = expand(x, {4, 3});
  const Status status = error_of([&] { wide.access(Access::write, [](void*) {}); });
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.message().find("axis 1 of a tensor of shape [4, 3] is expanded"), std::string::npos)
      << status.message();
  EXPECT_TRUE(error_of([&] { wide.access(Access::read, [](void*) {}); }).ok());
}

TEST_F(AccessTensor, TheFunctionMayNotCallOps) {
  const Tensor x = Tensor::from<float>(random_floats(random_, 4), {4}, Device("cpu"));
  for (Device on : {Device("cpu"), device()}) {
    const Tensor y = Tensor::from<float>(random_floats(random_, 4), {4}, on);
    Status inside;
    y.access(Access::read, [&](void*) { inside = error_of([&] { relu(x); }); });
    on.synchronize();
    EXPECT_EQ(inside.code(), Code::invalid_argument) << on.spelling();
    EXPECT_NE(inside.message().find("may not submit work"), std::string::npos) << inside.message();
    EXPECT_TRUE(error_of([&] { relu(x); }).ok());
  }
}

TEST_F(AccessTensor, WhatTheFunctionThrowsReachesItsReader) {
  const Tensor y = Tensor::from<float>(random_floats(random_, 4), {4}, device());
  y.access(Access::write, [](void*) { throw std::runtime_error("the disk is full"); });
  const Status status = error_of([&] { relu(y).to_host<float>(); });
  EXPECT_NE(status.message().find("the disk is full"), std::string::npos) << status.message();
  EXPECT_TRUE(error_of([] { synchronize(); }).ok()) << "the reader was told";
}

TEST_F(AccessTensor, SynchronizeOfAllDevicesWaitsAndTells) {
  const Tensor x = Tensor::from<float>(random_floats(random_, 64), {64}, device());
  std::atomic<bool> ran{false};
  fakes::async_control().delay_us = 500;
  for (int i = 0; i < 10; ++i) relu(x);
  x.access(Access::read, [&](void*) { ran = true; });
  synchronize();
  EXPECT_TRUE(ran);
  fakes::async_control().fail_launch = 0;
  relu(x);
  EXPECT_EQ(error_of([] { synchronize(); }).code(), Code::internal);
  EXPECT_TRUE(error_of([] { synchronize(); }).ok());
}

TEST_F(AccessTensor, StreamsWaitForStreamsAndBarriers) {
  const Stream side(device());
  EXPECT_EQ(Stream::current(device()).index(), Stream::standard(device()).index());
  const std::vector<float> values = random_floats(random_, 64);
  const Tensor x = Tensor::from<float>(values, {64}, device());
  Tensor y;
  {
    const StreamScope scope(side);
    EXPECT_EQ(Stream::current(device()).index(), side.index());
    EXPECT_EQ(Stream::current(Device("cpu")).index(), Stream::standard(Device("cpu")).index())
        << "a stream of one device is not the current one of another";
    side.wait_stream(Stream::standard(device()));
    y = relu(x);
    device().barrier();
  }
  const Stream host(Device("cpu"));
  host.wait_stream(side);
  side.wait_stream(host);
  std::vector<float> wanted = values;
  for (float& value : wanted) value = std::max(value, 0.0f);
  EXPECT_EQ(relu(y).to_host<float>(), wanted);
}

}  // namespace
}  // namespace tenon::testing
