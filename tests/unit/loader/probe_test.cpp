// Plug-ins whose devices a child process counts first.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

#include "fixture.h"
#include "loader/log/log.h"
#include "loader/probe/cache.h"
#include "loader/probe/probe.h"
#include "loader/probe/record.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

class ProbeTest : public LoaderTest {
 protected:
  ProbeTest() { set("TENON_PLUGIN_PATH", scratch().path() + "/plugins"); }
  ~ProbeTest() override { set_log_sink({}); }

  std::string place(const std::string& provider) const {
    const std::string file = fmt::format("libtenon_{}.so", provider);
    const bool is_sound = provider == "sound";
    return scratch().copy(fmt::format("{}/{}", is_sound ? broken_folder() : probed_folder(), file),
                          fmt::format("plugins/{}", file));
  }
  void count_processes() { scratch().write("config/tenon/tenon.toml", config()); }
  // The process ids of the calls of device_count so far.
  std::vector<int64_t> processes() const {
    std::vector<int64_t> all;
    std::ifstream file(tally());
    for (int64_t number = 0; file >> number;) all.push_back(number);
    return all;
  }
  // The number of child processes that `explain` starts in a fresh loader.
  int children() {
    set("TENON_LOG", "load=debug");
    restart();
    int count = 0;
    set_log_sink([&](LogLevel, std::string_view, std::string_view text) {
      count += text.find("in a child process") != std::string_view::npos && text.starts_with("probing");
    });
    static_cast<void>(explain());
    set_log_sink({});
    return count;
  }

 private:
  std::string tally() const { return scratch().path() + "/tally"; }
  std::string config() const { return fmt::format("[provider.counted]\ntally = \"{}\"\n", tally()); }
};

struct Misdeed {
  const char* provider;
  Code code;
  const char* sentence;  // the result of the child process
};

void PrintTo(const Misdeed& misdeed, std::ostream* stream) { *stream << misdeed.provider; }

constexpr Misdeed misdeeds[] = {
    {"traps", Code::internal, "died of signal 5 (SIGTRAP)."},
    {"sleeps", Code::timeout, "did not end within 1 s."},
    {"exits", Code::internal, "ended without an answer. It printed: the driver wants another kernel"},
    {"exits_3", Code::internal, "ended with exit status 3."},
    {"babbles", Code::internal, "bytes that are not an answer."},
};

class Probed : public ProbeTest, public testing::WithParamInterface<Misdeed> {
 protected:
  Probed() { set("TENON_PROBE_SECONDS", "1"); }

  void expect_quarantined() const {
    const Candidate candidate = candidate_of(GetParam().provider);
    EXPECT_EQ(stage_name(candidate.stage), "probed");
    EXPECT_EQ(code_name(candidate.code), code_name(GetParam().code));
    EXPECT_TRUE(candidate.sentence.starts_with(
        fmt::format("the provider '{}' was not loaded: the child process that probed it ", GetParam().provider)))
        << candidate.sentence;
    EXPECT_NE(candidate.sentence.find(GetParam().sentence), std::string::npos) << candidate.sentence;
    EXPECT_NE(candidate.remedy.find("`tenon doctor --probe`"), std::string::npos) << candidate.remedy;
  }
};

TEST_P(Probed, AloneIsQuarantinedWithTheReason) {
  place(GetParam().provider);
  expect_quarantined();
  EXPECT_TRUE(list_devices().empty());
  const Result<OpenDevice*> device = open_device(GetParam().provider);
  ASSERT_FALSE(device.ok());
  EXPECT_NE(device.status().message().find(GetParam().sentence), std::string::npos) << device.status().message();
}

TEST_P(Probed, BesideASoundOneHidesNothing) {
  place(GetParam().provider);
  place("sound");
  std::string warnings;
  set_log_sink([&](LogLevel level, std::string_view, std::string_view text) {
    if (level == LogLevel::warning) warnings += text;
  });
  const Result<OpenDevice*> device = open_device("");
  set_log_sink({});
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ(device.value()->spelling, "sound:0");
  EXPECT_NE(warnings.find(GetParam().sentence), std::string::npos) << warnings;
  expect_quarantined();
}

TEST_P(Probed, KeptAnswerStartsNoChildUntilTheFileChanges) {
  const std::string path = place(GetParam().provider);
  EXPECT_EQ(children(), 1);
  expect_quarantined();
  EXPECT_EQ(children(), 0);
  expect_quarantined();
  std::filesystem::remove(path);
  scratch().copy(broken_folder() + "/libtenon_sound.so", "draft");
  std::filesystem::rename(scratch().path() + "/draft", path);
  EXPECT_EQ(children(), 0) << "another file, whose note does not ask for a child process";
  EXPECT_EQ(candidate_of(GetParam().provider).stage, Stage::note) << "nor has its name";
  place(GetParam().provider);
  EXPECT_EQ(children(), 1);
  expect_quarantined();
}

INSTANTIATE_TEST_SUITE_P(Misdeeds, Probed, testing::ValuesIn(misdeeds),
                         [](const auto& info) { return std::string(info.param.provider); });

TEST_F(ProbeTest, ASoundOneIsAskedInAnotherProcessFirstAndOnceOnly) {
  const std::string path = place("counted");
  count_processes();
  EXPECT_EQ(children(), 1);
  EXPECT_EQ(candidate_of("counted").stage, Stage::usable);
  ASSERT_EQ(processes().size(), 2u);
  EXPECT_NE(processes()[0], getpid());
  EXPECT_EQ(processes()[1], getpid());

  EXPECT_EQ(children(), 0);
  ASSERT_EQ(processes().size(), 3u);
  EXPECT_EQ(processes()[2], getpid());

  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(children(), 1) << "the file was changed";
  set("LD_LIBRARY_PATH", scratch().path());
  EXPECT_EQ(children(), 1) << "the environment may lead to another driver";
  scratch().write("config/tenon/tenon.toml", "[provider.counted]\ndriver = \"other\"\n");
  EXPECT_EQ(children(), 1) << "so may a setting of the provider";
  EXPECT_EQ(children(), 0);
}

TEST_F(ProbeTest, WithoutAFolderForAnswersEveryStartAsksAgain) {
  place("counted");
  for (const char* home : {"/proc/1/no/such/home", "/dev/null", ""}) {
    set("XDG_CACHE_HOME", home);
    set("HOME", home);
    EXPECT_EQ(children(), 1) << home;
    EXPECT_EQ(children(), 1) << home;
    EXPECT_EQ(candidate_of("counted").stage, Stage::usable) << home;
  }
}

TEST_F(ProbeTest, AnAnswerThatOthersCouldHaveWrittenIsNotBelieved) {
  place("counted");
  EXPECT_EQ(children(), 1);
  ASSERT_EQ(chmod((scratch().path() + "/cache/tenon/probes").c_str(), 0777), 0);
  EXPECT_EQ(children(), 1);
}

TEST_F(ProbeTest, SettingDecidesWhoIsAsked) {
  place("counted");
  place("sound");
  place("traps_unasked");
  set("TENON_PROVIDERS", "counted,sound");
  EXPECT_EQ(children(), 1) << "the one that is flagged";
  set("TENON_PROBE", "off");
  EXPECT_EQ(children(), 0);
  set("TENON_PROBE", "all");
  EXPECT_EQ(children(), 2);
  EXPECT_EQ(children(), 2) << "no stored answer is used";
  set("TENON_PROVIDERS", "");
  EXPECT_EQ(children(), 3);
  EXPECT_EQ(candidate_of("traps_unasked").stage, Stage::probed);
  EXPECT_EQ(candidate_of("sound").stage, Stage::usable);
}

TEST_F(ProbeTest, ANameLoadsThatProviderAlone) {
  place("sound");
  place("traps");
  set("TENON_LOG", "load=debug");
  restart();
  std::string lines;
  set_log_sink([&](LogLevel, std::string_view, std::string_view text) { lines += text; });
  EXPECT_TRUE(open_device("sound").ok());
  set_log_sink({});
  EXPECT_EQ(lines.find("in a child process"), std::string::npos) << lines;
}

TEST_F(ProbeTest, AnswerHoldsWhileItsFilesAreTheSameAndItsTimeLasts) {
  const std::string driver = scratch().write("driver.so", "version 1");
  const ProbeCache cache(scratch().path() + "/answers", "foo", "question");
  EXPECT_FALSE(cache.load().has_value());
  cache.store(Status(), {driver}, std::chrono::hours(1));
  ASSERT_TRUE(cache.load().has_value());
  EXPECT_TRUE(cache.load()->ok());
  EXPECT_FALSE(ProbeCache(scratch().path() + "/answers", "foo", "another question").load().has_value());
  cache.store(Status(Code::timeout, "it hangs.", "Wait."), {driver}, std::chrono::hours(1));
  EXPECT_EQ(cache.load()->message(), "it hangs.");
  EXPECT_EQ(cache.load()->remedy(), "Wait.");
  EXPECT_EQ(cache.load()->code(), Code::timeout);
  scratch().write("driver.so", "version 2 is longer");
  EXPECT_FALSE(cache.load().has_value()) << "the driver was changed";
  cache.store(Status(), {driver}, std::chrono::seconds(0));
  EXPECT_FALSE(cache.load().has_value()) << "its time is over";
}

TEST_F(ProbeTest, AnswersOfManyQuestionsFillNoDisk) {
  const std::string folder = scratch().path() + "/answers";
  for (int i = 0; i < 300; ++i) {
    ProbeCache(folder, "foo", fmt::format("question {}", i)).store(Status(), {}, std::chrono::hours(1));
  }
  const auto count = std::distance(std::filesystem::directory_iterator(folder), {});
  EXPECT_LE(count, 128);
  EXPECT_TRUE(ProbeCache(folder, "foo", "question 299").load().has_value());
}

TEST_F(ProbeTest, HelperStandsOneOrTwoFoldersAboveTheLibrary) {
  const std::string helper = scratch().write("prefix/libexec/tenon/tenon-probe", "");
  for (const char* folder : {"prefix/lib", "prefix/lib/machine"}) scratch().make_folder(folder);
  EXPECT_EQ(find_probe_helper(scratch().path() + "/prefix/lib"), "") << "it cannot be run";
  ASSERT_EQ(chmod(helper.c_str(), 0755), 0);
  for (const char* folder : {"prefix/lib", "prefix/lib/machine"}) {
    const std::string found = find_probe_helper(fmt::format("{}/{}", scratch().path(), folder));
    ASSERT_FALSE(found.empty()) << folder;
    EXPECT_TRUE(std::filesystem::equivalent(found, helper)) << found;
  }
}

TEST(Record, IsReadBackWhole) {
  Record record;
  record.add("path", "/a b\nc 12\n");
  record.add("path", std::string("\0end\n", 5));
  record.add("empty", "");
  const std::string bytes = record.encode();
  const std::optional<Record> read = Record::decode(bytes);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->all("path"), record.all("path"));
  EXPECT_EQ(read->get("empty"), "");
  EXPECT_EQ(read->get("absent"), "");
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Record::decode(bytes.substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(Record::decode(bytes + "end\n").has_value());
  EXPECT_FALSE(Record::decode("bla bla\n" + bytes).has_value());
  EXPECT_FALSE(Record::decode("tenon-probe 1\na 18446744073709551615\nb\nend\n").has_value());
}

}  // namespace
}  // namespace tenon::loader
