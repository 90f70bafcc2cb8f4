#include "fixture.h"
#include "sample_provider.h"

namespace tenon::loader {
namespace {

class Retire : public LoaderTest {
 protected:
  Retire() { register_provider("sample", sample_query(0)); }
};

TEST_F(Retire, ClosesDevicesAndShutsDownAndTheNextCallBeginsAnew) {
  OpenDevice* first = open_device("sample:0").value();
  ASSERT_TRUE(retire("sample").ok());
  EXPECT_EQ(sample(0).closes, 1);
  EXPECT_EQ(sample(0).shutdowns, 1);
  EXPECT_EQ(candidate_of("sample", Stage::found).stage, Stage::found);
  OpenDevice* second = open_device("sample:0").value();
  EXPECT_NE(first, second);
  EXPECT_EQ(sample(0).queries, 2);
  EXPECT_EQ(sample(0).opens, 2);
}

TEST_F(Retire, OldPointersStayReadableAndCallsThroughThemAreCancelled) {
  OpenDevice* device = open_device("sample:0").value();
  ASSERT_TRUE(retire("sample").ok());
  EXPECT_EQ(device->spelling, "sample:0");
  ep_stream* stream = nullptr;
  ep_error* error = nullptr;
  const ep_stream_desc desc{sizeof desc, EP_STRUCT_STREAM_DESC, nullptr, EP_STREAM_COMPUTE, 0, 0};
  const ep_status status = device->ops.stream_create(device->handle, &desc, &stream, &error);
  const Status told = take_error(status, error, {});
  EXPECT_EQ(told.code(), Code::cancelled);
  EXPECT_EQ(told.message(), "the device's provider was retired.");
  EXPECT_EQ(stream, nullptr);
  device->ops.memory_free(device->handle, nullptr);
}

TEST_F(Retire, WhatIsNotLoadedIsNotFound) {
  EXPECT_EQ(retire("sample").code(), Code::not_found);
  EXPECT_EQ(retire("nobody").code(), Code::not_found);
  ASSERT_TRUE(open_device("sample:0").ok());
  ASSERT_TRUE(retire("sample").ok());
  EXPECT_EQ(retire("sample").code(), Code::not_found);
}

}  // namespace
}  // namespace tenon::loader
