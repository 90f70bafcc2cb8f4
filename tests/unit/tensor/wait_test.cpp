// Tensor::wait: its report on an op that failed after its submission.
#include "core/ops/ops.h"
#include "tests/unit/tensor/in_flight.h"

namespace tenon::testing {
namespace {

class Wait : public InFlight {};

TEST_F(Wait, ReturnsOnceTheElementsAreThere) {
  const std::vector<float> values = random_floats(random_, 3000);
  poison(3000);
  fakes::async_control().delay_us = 500;
  const Tensor result = relu(relu(Tensor::from<float>(values, {3000}, device())));
  result.wait();
  // Nothing is left to do, so the tensors can be read while the device is paused.
  fakes::async_control().hold = true;
  EXPECT_TRUE(error_of([&] { result.wait(); }).ok());
  fakes::async_control().hold = false;
  std::vector<float> expected = values;
  for (float& value : expected) value = std::max(value, 0.0f);
  EXPECT_EQ(result.to_host<float>(), expected);
}

TEST_F(Wait, TellsTheErrorOfTheOpThatFailed) {
  const Tensor x = Tensor::from<float>(random_floats(random_, 64), {64}, device());
  fakes::async_control().delay_us = 200;
  fakes::async_control().fail_launch = 0;
  const Tensor bad = relu(x);
  const Status status = error_of([&] { bad.wait(); });
  EXPECT_EQ(status.code(), Code::internal);
  for (const char* part : {"this launch was told to fail", "relu", "async:0"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  EXPECT_EQ(error_of([&] { bad.wait(); }).message(), status.message()) << "asked again, it says the same";
}

TEST_F(Wait, TellsItOfViewsAndOfWhatWasComputedFromIt) {
  const Tensor x = Tensor::from<float>(random_floats(random_, 64), {8, 8}, device());
  fakes::async_control().fail_launch = 0;
  const Tensor bad = relu(x);
  const Tensor derived = relu(slice(transpose(bad, 0, 1), 0, 2, 5));
  for (const auto& use : std::initializer_list<std::function<Tensor()>>{
           [&] { return transpose(bad, 0, 1); }, [&] { return select(bad, 0, 3); }, [&] { return derived; },
           [&] { return bad.to(Device("cpu")); }}) {
    const Status status = error_of([&] { use().wait(); });
    EXPECT_EQ(status.code(), Code::internal);
    EXPECT_NE(status.message().find("this launch was told to fail"), std::string::npos) << status.message();
  }
  EXPECT_TRUE(error_of([&] { x.wait(); }).ok()) << "its input is well";
}

TEST_F(Wait, TheNextCallWorks) {
  const std::vector<float> values = random_floats(random_, 64);
  const Tensor x = Tensor::from<float>(values, {64}, device());
  fakes::async_control().fail_launch = 0;
  EXPECT_FALSE(error_of([&] { relu(x).wait(); }).ok());
  const Tensor good = relu(x);
  EXPECT_TRUE(error_of([&] { good.wait(); }).ok());
  std::vector<float> expected = values;
  for (float& value : expected) value = std::max(value, 0.0f);
  EXPECT_EQ(good.to_host<float>(), expected);
  EXPECT_TRUE(error_of([] { device().synchronize(); }).ok()) << "the failure was told already";
}

TEST_F(Wait, OfATensorThatIsOverwrittenWholeSucceedsAgain) {
  const std::vector<float> values = random_floats(random_, 64);
  const Tensor x = Tensor::from<float>(values, {64}, device());
  for (const auto& overwrite : std::initializer_list<std::function<void(Tensor&)>>{
           [&](Tensor& bad) { bad.copy_from(values.data()); }, [&](Tensor& bad) { copy_(bad, x); },
           [&](Tensor& bad) { add_out(bad, x, 0.0f); },
           [&](Tensor& bad) {
             bad.access(Access::write, [&](void* data) { std::copy_n(values.data(), 64, static_cast<float*>(data)); });
           }}) {
    fakes::async_control().fail_launch = 0;
    Tensor bad = relu(x);
    overwrite(bad);
    EXPECT_EQ(error_of([&] { bad.wait(); }).message(), "");
    EXPECT_EQ(bad.to_host<float>(), values);
    settle();
  }
}

TEST_F(Wait, OfATensorThatIsOverwrittenInPartStillFails) {
  const std::vector<float> values = random_floats(random_, 64);
  const Tensor x = Tensor::from<float>(values, {64}, device());
  for (const auto& write : std::initializer_list<std::function<void(Tensor&)>>{
           [&](Tensor& bad) { slice(bad, 0, 0, 63).copy_from(values.data()); },
           [&](Tensor& bad) { copy_(slice(bad, 0, 1), slice(x, 0, 1)); },
           [&](Tensor& bad) { add_out(slice(bad, 0, 0, 32), slice(x, 0, 0, 32), 0.0f); },
           [&](Tensor& bad) { slice(bad, 0, 0, 60).access(Access::write, [](void*) {}); },
           [&](Tensor& bad) { add_(bad, x); }, [&](Tensor& bad) { bad.access(Access::read_write, [](void*) {}); }}) {
    fakes::async_control().fail_launch = 0;
    Tensor bad = relu(x);
    static_cast<void>(error_of([&] { write(bad); }));
    EXPECT_EQ(error_of([&] { bad.wait(); }).code(), Code::internal);
    settle();
  }
}

TEST_F(Wait, ReturnsQuietlyOnASynchronousDeviceAndForNoElements) {
  const Tensor here = relu(Tensor::from<float>(random_floats(random_, 5), {5}, Device("cpu")));
  EXPECT_TRUE(error_of([&] { here.wait(); }).ok());
  for (Device on : {Device("cpu"), device()}) {
    const Tensor empty = relu(Tensor::empty({0, 4}, DType::f32, on));
    EXPECT_TRUE(error_of([&] { empty.wait(); }).ok()) << on.spelling();
  }
}

}  // namespace
}  // namespace tenon::testing
