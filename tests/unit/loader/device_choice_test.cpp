// The choice of the device: all combinations of the levels of the setting, the default device, and the providers that
// the loader loads to decide.
#include <array>

#include "fixture.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"
#include "sample_provider.h"

namespace tenon::loader {
namespace {

enum class Given { absent, valid, missing, malformed };

// One provider per level. The default is the only discrete device.
class DeviceChoice : public LoaderTest {
 protected:
  DeviceChoice() {
    register_all();
    sample(3).devices[0].device_class = EP_DEVICE_CLASS_DISCRETE;
  }

  static void register_all() {
    register_provider("argument", sample_query(0));
    register_provider("environment", sample_query(1));
    register_provider("file", sample_query(2));
    register_provider("builtin", sample_query(3));
  }

  static void restart_registered() {
    restart();
    register_all();
  }

  static std::string text_of(Given given, const std::string& provider) {
    switch (given) {
      case Given::absent: return "";
      case Given::valid: return provider + ":0";
      case Given::missing: return provider + ":7";
      case Given::malformed: return provider + ":?";
    }
    return "";
  }
};

TEST_F(DeviceChoice, HighestLevelThatSaysSomethingDecidesOrFails) {
  constexpr std::array all = {Given::absent, Given::valid, Given::missing, Given::malformed};
  for (Given argument : all) {
    for (Given environment : all) {
      for (Given file : all) {
        set("TENON_DEVICE", text_of(environment, "environment"));
        scratch().write("config/tenon/tenon.toml",
                        file == Given::absent ? "" : fmt::format("device = \"{}\"\n", text_of(file, "file")));
        restart_registered();
        const Given decisive = argument != Given::absent      ? argument
                               : environment != Given::absent ? environment
                               : file != Given::absent        ? file
                                                              : Given::valid;
        const std::string winner = argument != Given::absent      ? "argument"
                                   : environment != Given::absent ? "environment"
                                   : file != Given::absent        ? "file"
                                                                  : "builtin";
        const Result<std::string> device = resolve_device(text_of(argument, "argument"));
        SCOPED_TRACE(testing::Message() << static_cast<int>(argument) << static_cast<int>(environment)
                                        << static_cast<int>(file));
        if (decisive == Given::valid) {
          ASSERT_TRUE(device.ok()) << device.status().message();
          EXPECT_EQ(device.value(), winner + ":0");
        } else {
          ASSERT_FALSE(device.ok());
          EXPECT_EQ(device.status().code(), decisive == Given::missing ? Code::not_found : Code::invalid_argument);
          EXPECT_NE(device.status().message().find(fmt::format("'{}'", text_of(decisive, winner))), std::string::npos);
          const bool told = device.status().message().find("while taking the default device from") != std::string::npos;
          EXPECT_EQ(told, argument == Given::absent);
        }
      }
    }
  }
}

TEST_F(DeviceChoice, ErrorNamesTheLevel) {
  set("TENON_DEVICE", "nowhere");
  restart_registered();
  EXPECT_EQ(open_device("").status().message().find("there is no device 'nowhere'.\n  there are: "), 0u);
  EXPECT_NE(open_device("").status().message().find(
                "while taking the default device from the environment variable TENON_DEVICE"),
            std::string::npos);
}

TEST_F(DeviceChoice, NamingAProviderLoadsThatOneAlone) {
  ASSERT_TRUE(open_device("environment").ok());
  EXPECT_EQ(sample(1).queries, 1);
  for (int other : {0, 2, 3}) EXPECT_EQ(sample(other).queries, 0) << other;
}

TEST_F(DeviceChoice, SameDeviceTwiceIsOnePointer) {
  const Result<OpenDevice*> first = open_device("file:0");
  const Result<OpenDevice*> second = open_device("file");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first.value(), second.value());
  EXPECT_EQ(sample(2).opens, 1);
}

TEST_F(DeviceChoice, PrefersDiscreteThenIntegratedThenCpu) {
  sample(1).devices[0].device_class = EP_DEVICE_CLASS_INTEGRATED;
  EXPECT_EQ(resolve_device("").value(), "builtin:0");
  sample(3).devices[0].device_class = EP_DEVICE_CLASS_ACCELERATOR;
  restart_registered();
  EXPECT_EQ(resolve_device("").value(), "environment:0");
  sample(1).devices[0].device_class = EP_DEVICE_CLASS_SOFTWARE;
  restart_registered();
  EXPECT_EQ(resolve_device("").value(), "argument:0");
}

TEST_F(DeviceChoice, SkipsUnusableDevices) {
  sample(3).devices[0].unusable_reason = "its driver is too old.";
  EXPECT_EQ(resolve_device("").value(), "argument:0");
  const Result<OpenDevice*> named = open_device("builtin:0");
  ASSERT_FALSE(named.ok());
  EXPECT_EQ(named.status().message(), "the device builtin:0 cannot be used: its driver is too old.");
  EXPECT_FALSE(open_device("builtin").ok());
}

TEST_F(DeviceChoice, NeverPicksASoftwareDevice) {
  for (int number = 0; number < 4; ++number) sample(number).devices[0].device_class = EP_DEVICE_CLASS_SOFTWARE;
  const Result<OpenDevice*> device = open_device("");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), Code::not_found);
  EXPECT_NE(device.status().message().find("a software device is used only where it is named"), std::string::npos);
  EXPECT_EQ(device.status().remedy(), "If one of these will do, set TENON_DEVICE to its name.");
  EXPECT_TRUE(open_device("argument").ok());
}

TEST_F(DeviceChoice, ASlipInTheSpellingGivesTheDevicesThereAre) {
  for (const char* text : {"ARGUMENT", "argument:", " argument "}) {
    const Status refused = open_device(text).status();
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_NE(refused.message().find("there are: argument:0 ("), std::string::npos) << refused.message();
    EXPECT_EQ(refused.remedy().find("Did you mean argument? Provider names are lower case, without spaces. Write"), 0u)
        << refused.remedy();
  }
  EXPECT_EQ(open_device("???").status().remedy().find("Provider names are lower case"), 0u);
  EXPECT_EQ(open_device("Argumnet").status().remedy().find("Did you mean argument? "), 0u);
  EXPECT_EQ(open_device("argument 0").status().remedy().find("Did you mean argument? "), 0u);
  EXPECT_EQ(open_device("Argument:0").status().remedy().find("Did you mean argument:0? "), 0u);
  EXPECT_EQ(open_device("OpenBLAS").status().remedy().find("Provider names are lower case"), 0u);
}

TEST_F(DeviceChoice, AnEmptyListOfDevicesNamesTheListOfProviders) {
  set("TENON_PROVIDERS", "argumen");
  restart_registered();
  const std::string cause =
      "the environment variable TENON_PROVIDERS allows no other provider than those it names, and there is none called "
      "'argumen'";
  const Status none = open_device("").status();
  EXPECT_NE(none.message().find(cause), std::string::npos) << none.message();
  EXPECT_EQ(none.remedy(), "Did you mean argument? Correct the environment variable TENON_PROVIDERS, or remove it.");
  const Status named = open_device("argumen").status();
  EXPECT_NE(named.message().find(cause), std::string::npos) << named.message();
  EXPECT_EQ(named.remedy(), none.remedy());
  EXPECT_NE(open_device("argument").status().remedy().find("Add it to TENON_PROVIDERS"), std::string::npos);
}

TEST_F(DeviceChoice, ADefectOfTheBestDeviceIsPassedOverWithAWarning) {
  sample(3).on_open = [](const ep_host*, ep_error**) -> ep_status { throw 1; };
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view, std::string_view message) { lines.emplace_back(message); });
  const Result<OpenDevice*> device = open_device("");
  set_log_sink({});
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ(device.value()->spelling, "argument:0");
  EXPECT_EQ(lines,
            (std::vector<std::string>{"passed over builtin:0: the provider 'builtin' threw a C++ exception out of "
                                      "device_open: of an unknown type (rule Q02)."}));
  EXPECT_EQ(resolve_device("").value(), "argument:0");
}

TEST_F(DeviceChoice, AFailureOfTheBestDeviceIsAnErrorAndNoSilentChange) {
  sample(3).on_open = [](const ep_host*, ep_error**) -> ep_status { return EP_STATUS_OUT_OF_DEVICE_MEMORY; };
  EXPECT_EQ(open_device("").status().code(), Code::out_of_device_memory);
}

TEST_F(DeviceChoice, AllowedProvidersDecideInTheirOrder) {
  set("TENON_PROVIDERS", "file,builtin");
  restart_registered();
  EXPECT_EQ(resolve_device("").value(), "file:0");
  EXPECT_EQ(sample(3).queries, 0) << "what comes after the first that will do is not loaded";
  const Result<OpenDevice*> forbidden = open_device("argument:0");
  ASSERT_FALSE(forbidden.ok());
  EXPECT_NE(forbidden.status().message().find("it is not among the providers allowed (file, builtin)"),
            std::string::npos);
  EXPECT_EQ(sample(0).queries, 0);
  EXPECT_EQ(list_devices().size(), 2u);
}

TEST_F(DeviceChoice, ASlipInTheListOfProvidersGetsAWarning) {
  set("TENON_PROVIDERS", "file,builtn,vulkan");
  restart_registered();
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view, std::string_view message) { lines.emplace_back(message); });
  EXPECT_EQ(resolve_device("").value(), "file:0");
  set_log_sink({});
  EXPECT_EQ(lines,
            (std::vector<std::string>{"the environment variable TENON_PROVIDERS names 'builtn', which is not there; "
                                      "did you mean builtin?"}));
}

TEST_F(DeviceChoice, AnIdentityThatNoDeviceHasIsNotTakenForAMissingFile) {
  EXPECT_EQ(open_device("uuid=" + std::string(32, 'a')).status().remedy(), "Name one of the devices there are.");
}

TEST_F(DeviceChoice, NameThatMatchesNothingListsWhatThereIs) {
  sample(0).on_query = [](const ep_host* host, ep_error** error) {
    *error = host->error_make(host, EP_STATUS_NOT_FOUND, borrowed("the driver is not installed."),
                              borrowed("Install the driver."));
    return EP_STATUS_NOT_FOUND;
  };
  const Status failure = open_device("argument:0").status();
  EXPECT_EQ(failure.code(), Code::not_found);
  EXPECT_EQ(
      failure.message(),
      "there is no device 'argument:0'.\n"
      "  there are: environment:0 (a sample device, cpu), file:0 (a sample device, cpu), builtin:0 (a sample device, "
      "discrete)\n"
      "  the registered provider 'argument' was refused (negotiated): the driver is not installed.\n"
      "  while calling ep_plugin_query_v0 of the provider 'argument'");
  EXPECT_EQ(failure.remedy(), "Install the driver.");
  EXPECT_EQ(open_device("biultin").status().remedy(), "Did you mean builtin?");
  EXPECT_EQ(open_device("filt").status().remedy(), "Did you mean file?");
  EXPECT_EQ(open_device("fil").status().remedy().find("Did you mean file? If not: Copy libtenon_fil.so into "), 0u);
  EXPECT_EQ(open_device("biultin:0").status().remedy(), "Did you mean builtin:0?");
  EXPECT_EQ(open_device("argumnet").status().remedy(), "Did you mean argument?")
      << "it is there, though it was refused";
  EXPECT_EQ(open_device("file:3").status().remedy(), "Name one of the devices there are.");
  const std::string unknown = open_device("oblas").status().remedy();
  EXPECT_EQ(unknown.find("Copy libtenon_oblas.so into one of the folders searched: "), 0u) << unknown;
  EXPECT_NE(unknown.find(", or set TENON_PLUGIN_PATH to the folder it is in"), std::string::npos) << unknown;
}

TEST_F(DeviceChoice, AClassInPlaceOfAProviderGivesTheDevicesOfThatClass) {
  restart();
  register_provider("cpu", sample_query(0));
  EXPECT_EQ(open_device("gpu").status().remedy(),
            "'gpu' names a class of devices, not a provider, and no usable device is of that class. Name one of the "
            "devices there are.");
  EXPECT_EQ(open_device("cpuu").status().remedy(), "Did you mean cpu?");
  register_provider("card", sample_query(3));
  for (const char* text : {"gpu", "gpu:0", "GPU", " gpu "}) {
    EXPECT_EQ(open_device(text).status().remedy(),
              "'gpu' names a class of devices, not a provider. Name a device of that class: card:0.")
        << text;
  }
  EXPECT_EQ(open_device("discrete").status().remedy(),
            "'discrete' names a class of devices, not a provider. Name a device of that class: card:0.");
  register_provider("gpu", sample_query(1));
  EXPECT_TRUE(open_device("gpu").ok()) << "a provider may be called so";
}

// The provider is there, so the message must not advise to copy it.
TEST_F(DeviceChoice, ARefusedProviderWithoutARemedyGetsNone) {
  sample(0).on_query = [](const ep_host* host, ep_error** error) {
    *error = host->error_make(host, EP_STATUS_INVALID_ARGUMENT, borrowed("the setting is 'maybe'."), borrowed(""));
    return EP_STATUS_INVALID_ARGUMENT;
  };
  const Status failure = open_device("argument:0").status();
  EXPECT_NE(failure.message().find("the setting is 'maybe'."), std::string::npos) << failure.message();
  EXPECT_EQ(failure.remedy(), "");
}

TEST_F(DeviceChoice, UuidAndPciFindTheDeviceAcrossProviders) {
  sample(2).devices[0].uuid = 0xab;
  sample(3).devices[0].pci_bus = 0x41;
  const std::string uuid = "abababab-abab-abab-abab-abababababab";
  EXPECT_EQ(resolve_device("uuid=" + uuid).value(), "file:0");
  EXPECT_EQ(resolve_device("file:uuid=" + uuid).value(), "file:0");
  EXPECT_FALSE(resolve_device("builtin:uuid=" + uuid).ok());
  EXPECT_EQ(resolve_device("pci=41:00.0").value(), "builtin:0");
  EXPECT_EQ(resolve_device("builtin:pci=0000:41:00.0").value(), "builtin:0");
  EXPECT_FALSE(resolve_device("pci=42:00.0").ok());
}

TEST_F(DeviceChoice, OneGpuThroughTwoProvidersIsOnePhysicalDevice) {
  sample(1).devices[0].uuid = 7;
  sample(3).devices[0].uuid = 7;
  sample(0).devices[0].pci_bus = 3;
  sample(2).devices[0].pci_bus = 3;
  const std::vector<ListedDevice> devices = list_devices();
  ASSERT_EQ(devices.size(), 4u);
  EXPECT_EQ(devices[0].same_as, "");
  EXPECT_EQ(devices[1].same_as, "");
  EXPECT_EQ(devices[2].same_as, "argument:0");
  EXPECT_EQ(devices[3].same_as, "environment:0");
}

TEST_F(DeviceChoice, InvalidSettingsFailEveryOpening) {
  set("TENON_VM", "sometimes");
  restart_registered();
  const Status failure = open_device("file:0").status();
  EXPECT_EQ(failure.message(),
            "the value 'sometimes' of the environment variable TENON_VM is invalid: it may be one of async, sync.");
  EXPECT_EQ(sample(2).queries, 0);
}

}  // namespace
}  // namespace tenon::loader
