#include "loader/select/spelling.h"

#include <gtest/gtest.h>

#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

ListedDevice device(const std::string& provider, uint32_t index, int32_t device_class, bool usable = true) {
  ListedDevice listed{fmt::format("{}:{}", provider, index), provider, index, {}, {}};
  listed.info.device_class = device_class;
  if (!usable) listed.info.unusable_reason = "broken.";
  return listed;
}

TEST(Spelling, ReadsEachForm) {
  EXPECT_EQ(parse_spelling("cpu").value().by, Spelling::By::best);
  EXPECT_EQ(parse_spelling("cpu").value().provider, "cpu");
  EXPECT_EQ(parse_spelling("cuda:12").value().index, 12u);
  const Spelling uuid = parse_spelling("vulkan:uuid=GPU-00112233-4455-6677-8899-aabbccddeeFF").value();
  EXPECT_EQ(uuid.provider, "vulkan");
  EXPECT_EQ(uuid_text(uuid.uuid), "00112233445566778899aabbccddeeff");
  EXPECT_EQ(pci_text(parse_spelling("pci=10de:3f:1e.7").value().pci), "10de:3f:1e.7");
  EXPECT_EQ(pci_text(parse_spelling("cuda:pci=01:00.0").value().pci), "0000:01:00.0");
}

TEST(Spelling, RefusesWhatNamesNoDevice) {
  for (const char* text :
       {":", ":0", "CPU", "cpu:", "cpu:-1", "cpu:1x", "cpu:99999999999", "cuda:uuid=12",
        "cuda:uuid=", "vulkan:uuid=zz112233445566778899aabbccddeeff", "pci=", "pci=1", "pci=1.0", "pci=:1:2.3",
        "cuda:pci=x:0.0", "a b", "../x", "cpu:0:0", "an_unreasonably_long_name_of_32_chars"}) {
    const Result<Spelling> spelling = parse_spelling(text);
    ASSERT_FALSE(spelling.ok()) << text;
    EXPECT_EQ(spelling.status().message(), fmt::format("'{}' names no device.", text));
    EXPECT_FALSE(spelling.status().remedy().empty());
  }
}

TEST(MatchDevice, ProviderAloneIsItsBestUsableDevice) {
  const std::vector<ListedDevice> devices = {
      device("vulkan", 0, EP_DEVICE_CLASS_SOFTWARE), device("vulkan", 1, EP_DEVICE_CLASS_DISCRETE, false),
      device("vulkan", 2, EP_DEVICE_CLASS_INTEGRATED), device("vulkan", 3, EP_DEVICE_CLASS_INTEGRATED)};
  EXPECT_EQ(match_device(parse_spelling("vulkan").value(), devices), 2u);
  EXPECT_EQ(match_device(parse_spelling("vulkan:1").value(), devices), 1u) << "an index may mean an unusable one";
  EXPECT_EQ(match_device(parse_spelling("vulkan:4").value(), devices), std::nullopt);
  EXPECT_EQ(match_device(parse_spelling("cuda").value(), devices), std::nullopt);
  const std::vector<ListedDevice> software = {device("vulkan", 0, EP_DEVICE_CLASS_SOFTWARE)};
  EXPECT_EQ(match_device(parse_spelling("vulkan").value(), software), 0u) << "named, a software device will do";
}

TEST(MatchDevice, NoUuidMatchesNoUuid) {
  const std::vector<ListedDevice> devices = {device("a", 0, EP_DEVICE_CLASS_CPU)};
  EXPECT_EQ(match_device(parse_spelling("uuid=00000000000000000000000000000000").value(), devices), std::nullopt);
}

TEST(ChooseDefault, FirstOfTheBestClass) {
  std::vector<ListedDevice> devices = {
      device("null", 0, EP_DEVICE_CLASS_SOFTWARE), device("cpu", 0, EP_DEVICE_CLASS_CPU),
      device("cuda", 0, EP_DEVICE_CLASS_DISCRETE), device("vulkan", 0, EP_DEVICE_CLASS_DISCRETE)};
  EXPECT_EQ(choose_default(devices), 2u);
  devices[2].info.unusable_reason = "no driver.";
  EXPECT_EQ(choose_default(devices), 3u);
  devices.pop_back();
  EXPECT_EQ(choose_default(devices), 1u);
  devices.resize(1);
  EXPECT_EQ(choose_default(devices), std::nullopt);
}

TEST(SameHardware, UuidDecidesBeforePci) {
  ListedDevice a = device("cuda", 0, EP_DEVICE_CLASS_DISCRETE);
  ListedDevice b = device("vulkan", 0, EP_DEVICE_CLASS_DISCRETE);
  EXPECT_FALSE(is_same_hardware(a, b));
  a.info.pci = b.info.pci = {0, 1, 0, 0};
  EXPECT_TRUE(is_same_hardware(a, b));
  a.info.uuid.fill(1);
  EXPECT_TRUE(is_same_hardware(a, b)) << "one has no UUID";
  b.info.uuid.fill(2);
  EXPECT_FALSE(is_same_hardware(a, b)) << "two parts of one card";
  b.provider = "cuda";
  b.info.uuid.fill(1);
  EXPECT_FALSE(is_same_hardware(a, b)) << "a provider's own devices are different ones";
}

}  // namespace
}  // namespace tenon::loader
