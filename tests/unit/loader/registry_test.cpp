// The life of candidates: order, duplicates, stages, shutdown, leaks.
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <thread>

#include "fixture.h"
#include "loader/library/library.h"
#include "loader/log/log.h"
#include "loader/note/note.h"
#include "primitives/text/format.h"
#include "sample_provider.h"

namespace tenon::loader {
namespace {

class RegistryTest : public LoaderTest {
 protected:
  std::string place_sound(const std::string& folder, const std::string& name = "sound") const {
    return scratch().copy(broken_folder() + "/libtenon_sound.so", fmt::format("{}/libtenon_{}.so", folder, name));
  }
  std::vector<Candidate> of(const std::string& provider) {
    std::vector<Candidate> found;
    for (const Candidate& candidate : explain()) {
      if (candidate.provider == provider) found.push_back(candidate);
    }
    return found;
  }
};

TEST_F(RegistryTest, DroppingAFileIntoTheUsersFolderIsEnough) {
  place_sound("data/tenon/providers");
  EXPECT_EQ(resolve_device("").value(), "sound:0");
  EXPECT_EQ(candidate_of("sound").source, "the user's folder");
}

TEST_F(RegistryTest, AFunctionOfADeviceThatThrowsIsNamed) {
  register_provider("throwing", sample_query(0));
  sample(0).change_device_ops = [](ep_device_ops* ops) {
    ops->stream_synchronize = [](ep_stream*, ep_error**) -> ep_status {
      throw std::runtime_error("the queue is gone");
    };
    ops->stream_destroy = [](ep_device*, ep_stream*) { throw 1; };
  };
  const Result<OpenDevice*> device = open_device("throwing");
  ASSERT_TRUE(device.ok()) << device.status().message();
  ep_error* error = nullptr;
  ASSERT_EQ(device.value()->ops.stream_synchronize(nullptr, &error), EP_STATUS_INTERNAL);
  EXPECT_EQ(take_error(EP_STATUS_INTERNAL, error, {}).message(),
            "the provider 'throwing' threw a C++ exception out of stream_synchronize: the queue is gone (rule Q02).");
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view, std::string_view message) { lines.emplace_back(message); });
  device.value()->ops.stream_destroy(device.value()->handle, nullptr);
  set_log_sink({});
  EXPECT_EQ(lines, (std::vector<std::string>{"the provider 'throwing' threw a C++ exception out of stream_destroy: "
                                             "something that is not a std::exception (rule Q02)."}));
}

TEST_F(RegistryTest, WhatPlugInsBringDisturbsNobodyInSilence) {
  const std::string first = TENON_BUNDLED_FOLDER "/bundles_1", second = TENON_BUNDLED_FOLDER "/bundles_2";
  set("TENON_PLUGIN_PATH", first + ":" + second);
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view, std::string_view message) { lines.emplace_back(message); });
  EXPECT_EQ(candidate_of("bundles_1").code, Code::ok);
  EXPECT_EQ(candidate_of("bundles_2").code, Code::ok);
  set_log_sink({});
  volatile float small = std::numeric_limits<float>::min();
  EXPECT_GT(small / 16, 0.0F) << "a constructor of a plug-in has changed the thread's floating-point state";
  const std::string told = fmt::format(
      "the plug-in {0}/libtenon_bundles_2.so brings {0}/libtenon_test_bundled.so, but gets "
      "{1}/libtenon_test_bundled.so",
      second, first);
  EXPECT_EQ(
      std::count_if(lines.begin(), lines.end(), [](const auto& line) { return line.starts_with("the plug-in "); }), 1);
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const auto& line) { return line.starts_with(told); }))
      << told;
}

TEST_F(RegistryTest, NothingIsLookedAtUntilAsked) {
  set("TENON_PLUGIN_PATH", broken_folder());
  for (const Candidate& candidate : explain(Stage::found)) {
    EXPECT_EQ(candidate.stage, Stage::found);
    EXPECT_EQ(candidate.code, Code::ok);
    EXPECT_TRUE(candidate.version.empty());
  }
  EXPECT_EQ(candidate_of("sound", Stage::note).stage, Stage::note);
  EXPECT_EQ(candidate_of("sound", Stage::note).version, "1.0.0");
  EXPECT_EQ(candidate_of("throws", Stage::note).code, Code::ok);
  EXPECT_EQ(candidate_of("no_note", Stage::found).code, Code::invalid_argument) << "it stays where it is";
}

TEST_F(RegistryTest, TheEarlierFolderWins) {
  const std::string first = place_sound("first");
  place_sound("second");
  set("TENON_PLUGIN_PATH", fmt::format("{}/first:{}/second", scratch().path(), scratch().path()));
  const std::vector<Candidate> all = of("sound");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].code, Code::ok);
  EXPECT_EQ(all[1].code, Code::cancelled);
  EXPECT_EQ(all[1].stage, Stage::found);
  EXPECT_EQ(all[1].sentence, fmt::format("it is not loaded: '{}' comes first and has the same name.", first));
}

TEST_F(RegistryTest, ABadFileDoesNotHideAGoodOneOfItsName) {
  scratch().write("first/libtenon_sound.so", "no library");
  place_sound("second");
  set("TENON_PLUGIN_PATH", fmt::format("{}/first:{}/second", scratch().path(), scratch().path()));
  const Result<OpenDevice*> device = open_device("sound");
  ASSERT_TRUE(device.ok()) << device.status().message();
  const std::vector<Candidate> all = of("sound");
  EXPECT_EQ(all[0].stage, Stage::note);
  EXPECT_EQ(all[1].stage, Stage::chosen);
}

TEST_F(RegistryTest, OneFileUnderTwoPathsIsOne) {
  const std::string path = place_sound("first");
  scratch().make_folder("second");
  std::filesystem::create_hard_link(path, scratch().path() + "/second/libtenon_sound.so");
  set("TENON_PLUGIN_PATH", fmt::format("{}/first:{}/second", scratch().path(), scratch().path()));
  const std::vector<Candidate> looked_at = explain(Stage::note);
  ASSERT_EQ(looked_at.size(), 2u);
  EXPECT_EQ(looked_at[1].stage, Stage::trusted);
  EXPECT_EQ(looked_at[1].sentence, fmt::format("it is the same file as '{}'.", path));
}

TEST_F(RegistryTest, RegisteredProvidersComeBeforeFiles) {
  place_sound("first");
  set("TENON_PLUGIN_PATH", scratch().path() + "/first");
  register_provider("sound", sample_query(0));
  const Result<OpenDevice*> device = open_device("sound");
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(device.value()->info.name, "a sample device");
  EXPECT_EQ(of("sound")[1].sentence,
            "it is not loaded: 'the one registered by the application' comes first and has the same name.");
}

TEST_F(RegistryTest, RegisteringANameInUseChangesNothing) {
  register_provider("sample", sample_query(0));
  ASSERT_TRUE(open_device("sample").ok());
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view, std::string_view message) { lines.emplace_back(message); });
  register_provider("sample", sample_query(1));
  register_provider("No Name", sample_query(1));
  register_provider("empty", nullptr);
  set_log_sink({});
  EXPECT_EQ(lines.size(), 3u);
  ASSERT_TRUE(open_device("sample").ok());
  EXPECT_EQ(sample(1).queries, 0);
}

TEST_F(RegistryTest, AProviderWithoutDevicesSaysSo) {
  sample(0).devices.clear();
  register_provider("sample", sample_query(0));
  const Candidate candidate = candidate_of("sample");
  EXPECT_EQ(candidate.stage, Stage::enumerated);
  EXPECT_EQ(candidate.code, Code::not_found);
  EXPECT_EQ(candidate.sentence, "it works, but found no device.");
  EXPECT_EQ(sample(0).shutdowns, 1);
}

TEST_F(RegistryTest, AProviderWithUnusableDevicesAloneEndsThere) {
  sample(0).devices[0].unusable_reason = "its firmware is too old.";
  sample(0).devices[0].remedy = "Update the firmware.";
  register_provider("sample", sample_query(0));
  const Candidate candidate = candidate_of("sample");
  EXPECT_EQ(candidate.stage, Stage::usable);
  EXPECT_EQ(candidate.code, Code::unsupported);
  EXPECT_EQ(candidate.sentence, "its firmware is too old.");
  EXPECT_EQ(candidate.remedy, "Update the firmware.");
  ASSERT_EQ(list_devices().size(), 1u) << "shown all the same";
}

TEST_F(RegistryTest, ADeviceThatCannotBeDescribedLeavesTheOthers) {
  sample(0).devices.resize(2);
  sample(0).change_info = [](ep_device_info* info) {
    static int call = 0;
    if (++call % 2 == 1) info->device_class = 77;
  };
  register_provider("sample", sample_query(0));
  const std::vector<ListedDevice> devices = list_devices();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_NE(devices[0].info.unusable_reason.find("gives it the class 77"), std::string::npos);
  EXPECT_TRUE(devices[1].info.usable());
  EXPECT_EQ(resolve_device("sample").value(), "sample:1");
}

TEST_F(RegistryTest, FailureToOpenIsTheProvidersOwn) {
  sample(0).on_open = [](const ep_host* host, ep_error** error) {
    *error = host->error_make(host, EP_STATUS_OUT_OF_DEVICE_MEMORY, borrowed("the device is full."), borrowed(""));
    return EP_STATUS_OUT_OF_DEVICE_MEMORY;
  };
  register_provider("sample", sample_query(0));
  const Status status = open_device("sample").status();
  EXPECT_EQ(status.code(), Code::out_of_device_memory);
  EXPECT_EQ(status.message().find("the device is full."), 0u);
  sample(0).on_open = {};
  EXPECT_TRUE(open_device("sample").ok()) << "and can be tried again";
}

TEST_F(RegistryTest, ClosingAndShuttingDownAreOrderly) {
  register_provider("sample", sample_query(0));
  OpenDevice* device = open_device("sample").value();
  close_device(device);
  EXPECT_EQ(sample(0).closes, 1);
  device = open_device("sample").value();
  EXPECT_EQ(sample(0).opens, 2);
  EXPECT_EQ(sample(0).queries, 1);
  shutdown_all();
  EXPECT_EQ(sample(0).closes, 2);
  EXPECT_EQ(sample(0).shutdowns, 1);
  shutdown_all();
  EXPECT_EQ(sample(0).shutdowns, 1);
  EXPECT_EQ(open_device("sample").status().message(), "no device can be opened: the runtime has been shut down.");
}

TEST_F(RegistryTest, ALeakHasAName) {
  static void* block;
  sample(0).on_query = [](const ep_host* host, ep_error**) -> ep_status {
    block = host->allocate(host, 240, 16);
    return EP_STATUS_OK;
  };
  register_provider("sample", sample_query(0));
  ASSERT_TRUE(open_device("sample").ok());
  EXPECT_EQ(provider_host_memory("sample").bytes, 240u);
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view topic, std::string_view message) {
    lines.push_back(fmt::format("{}: {}", topic, message));
  });
  shutdown_all();
  set_log_sink({});
  EXPECT_EQ(
      lines,
      (std::vector<std::string>{"memory: the provider 'sample' has leaked 240 bytes of host memory in 1 blocks."}));
  std::free(block);
}

TEST_F(RegistryTest, DeviceMemoryIsReportedPerDevice) {
  register_provider("sample", sample_query(0));
  OpenDevice* device = open_device("sample").value();
  sample(0).host->device_memory_report(sample(0).host, device->handle, 5000);
  EXPECT_EQ(reported_device_memory(*device), 5000);
}

TEST_F(RegistryTest, ProvidersGetTheirSectionOfTheConfigFile) {
  scratch().write("config/tenon/tenon.toml", "[provider.sample]\ndepth = 3\n[provider.other]\ndepth = 4\n");
  register_provider("sample", sample_query(0));
  ASSERT_TRUE(open_device("sample").ok());
  ep_string value{};
  ASSERT_EQ(sample(0).host->config_get(sample(0).host, borrowed("depth"), &value), EP_STATUS_OK);
  EXPECT_EQ(std::string(value.data, value.size), "3");
}

TEST_F(RegistryTest, FoldersAreReported) {
  set("TENON_PLUGIN_PATH", broken_folder() + ":/nowhere/at/all");
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view, std::string_view message) { lines.emplace_back(message); });
  const std::vector<SearchedFolder> folders = searched_folders();
  set_log_sink({});
  ASSERT_GE(folders.size(), 2u);
  EXPECT_TRUE(folders[0].status.ok());
  EXPECT_EQ(folders[0].candidates, 13u);
  EXPECT_EQ(folders[1].status.code(), Code::not_found);
  EXPECT_EQ(lines,
            (std::vector<std::string>{"the folder '/nowhere/at/all' cannot be read: No such file or directory."}));
}

TEST_F(RegistryTest, ThreadsOpenOneDeviceOnce) {
  register_provider("sample", sample_query(0));
  std::vector<OpenDevice*> seen(4);
  std::vector<std::thread> threads;
  for (OpenDevice*& slot : seen) {
    threads.emplace_back([&slot] { slot = open_device("sample").value(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (OpenDevice* device : seen) EXPECT_EQ(device, seen[0]);
  EXPECT_EQ(sample(0).opens, 1);
}

TEST_F(RegistryTest, AFileSwappedAfterItsCheckIsDetected) {
  const std::string path = place_sound("first");
  const Result<CheckedFile> checked = open_checked(path);
  ASSERT_TRUE(checked.ok());
  EXPECT_TRUE(Library::load(checked.value()).ok());
  std::filesystem::rename(place_sound("second"), path);
  EXPECT_EQ(
      Library::load(checked.value()).status().message(),
      fmt::format("what was loaded from '{}' is not the file that was checked: it was replaced meanwhile.", path));
}

// A thread swaps two files all the time. The loader must load the file that it checked, or report the swap.
TEST_F(RegistryTest, SwapsAtAnyMomentAreDetected) {
  const std::string path = place_sound("first");
  const std::string other = scratch().copy(broken_folder() + "/libtenon_refuses.so", "second/libtenon_sound.so");
  std::atomic<bool> stop{false};
  std::thread swapper([&] {
    while (!stop.load()) {
      static_cast<void>(renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE));
    }
  });
  int loaded = 0, told = 0;
  for (int i = 0; i < 4000 && (i < 300 || loaded == 0 || told == 0); ++i) {
    const Result<CheckedFile> checked = open_checked(path);
    ASSERT_TRUE(checked.ok()) << checked.status().message();
    const Result<PluginNote> note = read_note(checked->descriptor.get(), checked->identity.size);
    ASSERT_TRUE(note.ok()) << note.status().message();
    const Result<std::unique_ptr<Library>> library = Library::load(checked.value());
    if (!library.ok()) {
      EXPECT_NE(library.status().message().find("it was replaced meanwhile"), std::string::npos)
          << library.status().message();
      ++told;
      continue;
    }
    ++loaded;
    ep_plugin_ops ops{};
    const ep_status answer = library.value()->query()(nullptr, &ops, nullptr);
    EXPECT_EQ(answer, note->name == "refuses" ? EP_STATUS_VERSION : EP_STATUS_OK) << "the code is not the note's";
  }
  stop = true;
  swapper.join();
  EXPECT_GT(loaded, 0);
  EXPECT_GT(told, 0) << "no swap fell between check and load";
}

TEST_F(RegistryTest, AFileRewrittenAfterItsCheckIsDetected) {
  const std::string path = place_sound("first");
  const Result<CheckedFile> checked = open_checked(path);
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_EQ(Library::load(checked.value()).status().message(), "the file was changed after it had been checked.");
}

}  // namespace
}  // namespace tenon::loader
