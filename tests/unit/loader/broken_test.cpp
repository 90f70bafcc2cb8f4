// Real files in one folder. Each is wrong in one way; a sound one is in the same folder.
#include <sys/stat.h>

#include <filesystem>

#include "ep_api/ep_api.h"
#include "fixture.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

struct Expected {
  const char* provider;
  Stage stage;
  Code code;
  const char* sentence;
  const char* remedy;
};

void PrintTo(const Expected& expected, std::ostream* stream) { *stream << expected.provider; }

constexpr Expected expectations[] = {
    {"no_note", Stage::note, Code::invalid_argument,
     "it is not a Tenon provider: it holds no note named 'Tenon' (rule N01).",
     "To make the file a provider, write EP_PLUGIN_NOTE(name, version, flags) once at file scope and build it again."},
    {"wrong_version", Stage::note, Code::version, "it was built for ABI 0.99, this host speaks 0.2 (rule N02).",
     "Build the provider against this Tenon, or use the Tenon it was built for; while the ABI is 0.x both must have "
     "the "
     "same minor version."},
    {"other_name", Stage::note, Code::invalid_argument,
     "its note names the provider 'sound', the file must then be called libtenon_sound.so, not libtenon_other_name.so "
     "(rule N05).",
     "Rename the file."},
    {"other_kind", Stage::note, Code::unsupported,
     "it is a plug-in of unknown kind 99; this host loads plug-ins for devices and for collectives (rule "
     "N07).",
     "Use a newer Tenon that knows this kind."},
    {"other_sanitizer", Stage::note, Code::unsupported,
     "it was built with the memory sanitizer, which this program was not built with (rule N03).",
     "Build the provider without it, or the program with it."},
    {"missing_symbol", Stage::loaded, Code::not_found, "it does not export the function ep_plugin_query_v0 (rule N06).",
     "Define it with EP_EXPORT, and let no version script make it local."},
    {"missing_library", Stage::loaded, Code::not_found,
     "the dynamic linker refused it: libtenon_test_absent.so: cannot open shared object file: No such file or "
     "directory (rule N06).",
     "Install the library libtenon_test_absent.so, or add its folder to LD_LIBRARY_PATH."},
    {"throws", Stage::negotiated, Code::internal,
     "the provider 'throws' threw a C++ exception out of ep_plugin_query_v0: the query went wrong (rule Q02).",
     "Report it to the provider's author: no exception may cross the border."},
    {"refuses", Stage::negotiated, Code::version,
     "this host is too old for me.\n  while calling ep_plugin_query_v0 of the provider 'refuses'", "Use a newer host."},
    {"short_struct", Stage::negotiated, Code::invalid_argument,
     "the table of the provider 'short_struct' lacks the required function 'device_count' (rule T03).",
     "Report it to the provider's author."},
    {"missing_slot", Stage::negotiated, Code::invalid_argument,
     "the table of the provider 'missing_slot' lacks the required function 'device_info' (rule T03).",
     "Report it to the provider's author."},
};

class Broken : public LoaderTest, public testing::WithParamInterface<Expected> {
 protected:
  Broken() { set("TENON_PLUGIN_PATH", broken_folder()); }
};

TEST_P(Broken, IsRefusedWithStageCodeSentenceAndRemedy) {
  const Expected& expected = GetParam();
  const Candidate candidate = candidate_of(expected.provider);
  EXPECT_EQ(stage_name(candidate.stage), stage_name(expected.stage));
  EXPECT_EQ(code_name(candidate.code), code_name(expected.code));
  EXPECT_EQ(candidate.sentence, expected.sentence);
  EXPECT_EQ(candidate.remedy, expected.remedy);
  EXPECT_TRUE(candidate.devices.empty());
}

TEST_P(Broken, NamedAsDeviceGivesThatReason) {
  const Result<OpenDevice*> device = open_device(GetParam().provider);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), Code::not_found);
  EXPECT_NE(device.status().message().find(GetParam().sentence), std::string::npos) << device.status().message();
  EXPECT_NE(device.status().message().find(
                "there are: missing_device_slot:0 (a sound device, cpu), sound:0 (a sound device, cpu)"),
            std::string::npos);
  EXPECT_EQ(device.status().remedy(), GetParam().remedy);
}

INSTANTIATE_TEST_SUITE_P(Providers, Broken, testing::ValuesIn(expectations),
                         [](const auto& info) { return std::string(info.param.provider); });

class BrokenFolder : public LoaderTest {};

TEST_F(BrokenFolder, HidesNoSoundProvider) {
  set("TENON_PLUGIN_PATH", broken_folder());
  const std::vector<Candidate> all = explain();
  EXPECT_EQ(all.size(), std::size(expectations) + 2);
  const Candidate sound = candidate_of("sound");
  EXPECT_EQ(sound.stage, Stage::usable);
  EXPECT_EQ(sound.code, Code::ok);
  EXPECT_EQ(sound.sentence, "sound:0");
  EXPECT_EQ(sound.version, "1.0.0");
  EXPECT_EQ(sound.source, "TENON_PLUGIN_PATH");
  set_log_sink([](LogLevel, std::string_view, std::string_view) {});
  const Result<OpenDevice*> device = open_device("");
  set_log_sink({});
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ(device.value()->spelling, "sound:0");
  EXPECT_EQ(candidate_of("missing_device_slot").stage, Stage::usable);
  EXPECT_EQ(candidate_of("missing_device_slot").sentence,
            "the table of the device missing_device_slot:0 lacks the required function 'upload' (rule T03).");
  EXPECT_EQ(candidate_of("sound").stage, Stage::chosen);
}

TEST_F(BrokenFolder, DeviceWithoutRequiredFunctionIsNotOpened) {
  set("TENON_PLUGIN_PATH", broken_folder());
  const Result<OpenDevice*> device = open_device("missing_device_slot:0");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().message(),
            "the table of the device missing_device_slot:0 lacks the required function 'upload' (rule T03).");
}

TEST_F(BrokenFolder, TextFileIsRefused) {
  const std::string path = scratch().write("plugins/libtenon_text.so", "#!/bin/sh\necho I am no library at all\n");
  set("TENON_PLUGIN_PATH", scratch().path() + "/plugins");
  const Candidate candidate = candidate_of("text");
  EXPECT_EQ(candidate.stage, Stage::note);
  EXPECT_EQ(candidate.code, Code::invalid_argument);
  EXPECT_EQ(candidate.sentence, "it is not a shared library of this machine: it does not begin as an ELF file does.");
  EXPECT_EQ(candidate.remedy, "Put a provider built for this machine in its place, or remove the file.");
}

TEST_F(BrokenFolder, FolderOthersCanWriteToIsRefused) {
  const std::string folder = scratch().make_folder("plugins");
  scratch().copy(broken_folder() + "/libtenon_sound.so", "plugins/libtenon_sound.so");
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  set("TENON_PLUGIN_PATH", folder);
  const Candidate candidate = candidate_of("sound");
  EXPECT_EQ(candidate.stage, Stage::trusted);
  EXPECT_EQ(candidate.code, Code::invalid_argument);
  EXPECT_EQ(candidate.sentence, fmt::format("the folder '{}' can be written by anyone (mode 0777).", folder));
  EXPECT_EQ(candidate.remedy, fmt::format("Run: chmod o-w '{}'", folder));

  scratch().write("config/tenon/tenon.toml", "trust = \"any\"\n");
  restart();
  EXPECT_EQ(candidate_of("sound").stage, Stage::usable);
}

TEST_F(BrokenFolder, FileOthersCanWriteToIsRefused) {
  const std::string path = scratch().copy(broken_folder() + "/libtenon_sound.so", "plugins/libtenon_sound.so");
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  set("TENON_PLUGIN_PATH", scratch().path() + "/plugins");
  const Candidate candidate = candidate_of("sound");
  EXPECT_EQ(candidate.stage, Stage::trusted);
  EXPECT_EQ(candidate.sentence, fmt::format("the file '{}' can be written by anyone (mode 0666).", path));
}

TEST_F(BrokenFolder, LibraryCutShortIsRefused) {
  const std::string path = scratch().copy(broken_folder() + "/libtenon_sound.so", "plugins/libtenon_sound.so");
  set("TENON_PLUGIN_PATH", scratch().path() + "/plugins");
  const auto whole = static_cast<int64_t>(std::filesystem::file_size(path));
  for (int64_t size : {int64_t{0}, int64_t{3}, int64_t{40}, int64_t{100}, whole / 4}) {
    std::filesystem::resize_file(path, static_cast<uint64_t>(size));
    restart();
    const Candidate candidate = candidate_of("sound");
    EXPECT_NE(candidate.code, Code::ok) << size;
    EXPECT_LE(candidate.stage, Stage::loaded) << size;
    EXPECT_FALSE(candidate.sentence.empty()) << size;
  }
}

}  // namespace
}  // namespace tenon::loader
