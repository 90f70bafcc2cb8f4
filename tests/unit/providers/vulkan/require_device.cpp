// Skips every test of a program without a usable Vulkan device, with the reason. REQUIRE_VULKAN=1 makes that a failure.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "tests/unit/providers/vulkan/fixture.h"

namespace tenon::testing {
namespace {

std::string why_none() {
  Plugin plugin(Settings{{"library", "libvulkan.so.1"}});
  uint32_t count = 0;
  ep_error* error = nullptr;
  if (plugin.ops.device_count(plugin.ops.plugin, &count, &error) != EP_STATUS_OK) return plugin.host.sentence();
  if (count == 0) return "The Vulkan loader knows no device.";
  ep_device_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_DEVICE_INFO;
  if (plugin.ops.device_info(plugin.ops.plugin, 0, &info, &error) != EP_STATUS_OK) return plugin.host.sentence();
  return std::string(info.unusable_reason.data, info.unusable_reason.size);
}

class RequireDevice final : public ::testing::Environment {
 public:
  void SetUp() override {
    const std::string reason = why_none();
    if (reason.empty()) return;
    const char* required = std::getenv("REQUIRE_VULKAN");
    if (required != nullptr && std::string_view(required) == "1") {
      FAIL() << "no Vulkan device: " << reason;
    }
    GTEST_SKIP() << "skipped: no Vulkan device: " << reason;
  }
};

[[maybe_unused]] const auto* const environment = ::testing::AddGlobalTestEnvironment(new RequireDevice);

}  // namespace
}  // namespace tenon::testing
