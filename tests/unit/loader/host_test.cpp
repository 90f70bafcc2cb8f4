#include "loader/host/host.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "fixture.h"
#include "loader/host/error.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"
#include "sample_provider.h"

namespace tenon::loader {
namespace {

class Host : public LoaderTest {
 protected:
  HostServices services_{"sample", "/plugins/libtenon_sample.so", {{"depth", "7"}}};
  const ep_host* host_ = services_.table();
};

TEST_F(Host, CountsWhatAProviderAllocates) {
  void* first = host_->allocate(host_, 100, 64);
  void* second = host_->allocate(host_, 0, 1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  std::memset(first, 0x5a, 100);
  EXPECT_EQ(services_.memory().blocks, 2u);
  EXPECT_EQ(services_.memory().bytes, 100u);
  host_->release(host_, first, 100);
  host_->release(host_, second, 0);
  host_->release(host_, nullptr, 0);
  EXPECT_EQ(services_.memory().blocks, 0u);
  EXPECT_EQ(services_.memory().bytes, 0u);
}

TEST_F(Host, AllocationThatCannotBeGivesNull) {
  EXPECT_EQ(host_->allocate(host_, UINT64_MAX, 64), nullptr);
  EXPECT_EQ(host_->allocate(host_, INT64_MAX - 4, 64), nullptr);
  EXPECT_EQ(host_->allocate(host_, 64, 48), nullptr);
  EXPECT_EQ(host_->allocate(host_, 64, 0), nullptr);
  EXPECT_EQ(services_.memory().blocks, 0u);
}

TEST_F(Host, AnswersConfigurationAndPath) {
  ep_string value = {nullptr, 99};
  EXPECT_EQ(host_->config_get(host_, borrowed("depth"), &value), EP_STATUS_OK);
  EXPECT_EQ(view_of(value), "7");
  value = {nullptr, 99};
  EXPECT_EQ(host_->config_get(host_, borrowed("width"), &value), EP_STATUS_NOT_FOUND);
  EXPECT_EQ(value.size, 99u) << "untouched on failure";
  EXPECT_EQ(view_of(host_->plugin_path(host_)), "/plugins/libtenon_sample.so");
  EXPECT_EQ(host_->thread_limit(host_), thread_limit());
}

TEST_F(Host, ErrorsBecomeStatusesWithContext) {
  ep_error* error =
      host_->error_make(host_, EP_STATUS_UNSUPPORTED, borrowed("bf16 needs avx512_core_bf16."), borrowed("Use f32."));
  const Status status = take_error(EP_STATUS_UNSUPPORTED, error, "creating matmul on cpu:0");
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_EQ(status.message(), "bf16 needs avx512_core_bf16.\n  while creating matmul on cpu:0");
  EXPECT_EQ(status.remedy(), "Use f32.");
  EXPECT_TRUE(take_error(EP_STATUS_OK, nullptr, "resting").ok());
  EXPECT_EQ(take_error(EP_STATUS_TIMEOUT, nullptr, "").message(),
            "the provider gave no reason for its answer 'timeout'.");
}

TEST_F(Host, AnErrorOutlivesItsProvider) {
  ep_error* error = nullptr;
  {
    const HostServices gone("gone", "", {});
    error = gone.table()->error_make(gone.table(), EP_STATUS_INTERNAL, borrowed("the end."), {nullptr, 0});
  }
  EXPECT_EQ(take_error(EP_STATUS_INTERNAL, error, "").message(), "the end.");
}

TEST_F(Host, LogLinesBearTheProvidersName) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, std::string_view topic, std::string_view message) {
    lines.push_back(fmt::format("{} {} {}", log_level_name(level), topic, message));
  });
  log_levels = parse_log_levels("compile").value();
  EXPECT_TRUE(host_->log_enabled(host_, EP_LOG_DEBUG, borrowed("compile")));
  EXPECT_FALSE(host_->log_enabled(host_, EP_LOG_DEBUG, borrowed("own topic")));
  EXPECT_FALSE(host_->log_enabled(host_, 0, borrowed("compile")));
  EXPECT_FALSE(host_->log_enabled(host_, 9, borrowed("compile")));
  host_->log(host_, EP_LOG_INFO, borrowed("compile"), borrowed("built 3 kernels"));
  host_->log(host_, EP_LOG_INFO, borrowed("own topic"), borrowed("dropped"));
  host_->log(host_, EP_LOG_ERROR, borrowed("own topic"), borrowed("kept"));
  set_log_sink({});
  EXPECT_EQ(lines, (std::vector<std::string>{"info compile sample: built 3 kernels", "error provider sample: kept"}));
}

TEST_F(Host, DeviceMemoryIsSummedPerDevice) {
  auto* one = reinterpret_cast<ep_device*>(0x10);
  auto* two = reinterpret_cast<ep_device*>(0x20);
  host_->device_memory_report(host_, one, 4096);
  host_->device_memory_report(host_, two, 100);
  host_->device_memory_report(host_, one, -96);
  EXPECT_EQ(services_.device_memory(one), 4000);
  EXPECT_EQ(services_.device_memory(two), 100);
}

TEST_F(Host, ServicesAreThreadSafe) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        void* block = host_->allocate(host_, 48, 16);
        host_->device_memory_report(host_, nullptr, 1);
        ep_error* error = host_->error_make(host_, EP_STATUS_BUSY, borrowed("busy."), borrowed(""));
        EXPECT_FALSE(take_error(EP_STATUS_BUSY, error, "").ok());
        host_->release(host_, block, 48);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(services_.memory().blocks, 0u);
  EXPECT_EQ(services_.device_memory(nullptr), 8000);
}

}  // namespace
}  // namespace tenon::loader
