#include "loader/settings/settings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "fixture.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

// Three valid values of each type and an invalid one (empty: every text is valid).
struct Values {
  std::string argument, environment, file, invalid;
};

Values values_of(const SettingRow& row) {
  if (row.type == "Count") return {"1", "2", "3", "many"};
  if (row.type == "Bytes") return {"1K", "2K", "3K", "-5"};
  if (row.type == "Fallback") return {"native", "decompose", "compile", "cloud"};
  if (row.type == "VmMode") return {"sync", "async", "sync", "both"};
  if (row.type == "Trust") return {"any", "owned", "any", "nobody"};
  if (row.type == "Probe") return {"all", "off", "flagged", "some"};
  if (row.type == "Graphs" || row.type == "Blobs" || row.type == "Fuse" || row.type == "Deterministic")
    return {"off", "on", "off", "maybe"};
  if (row.type == "Tune") return {"load", "on", "off", "maybe"};
  if (row.type == "Compile") return {"wait", "beside", "wait", "later"};
  if (row.type == "Check") return {"compile", "off", "compile", "all"};
  if (row.type == "Precision") return {"relaxed", "portable", "full", "exact"};
  if (row.type == "Names") return {"a", "b", "c,d", "Not A Name"};
  if (row.type == "Folders") return {"/a", "/b", "/c", "relative"};
  if (row.type == "LogSpec") return {"vm", "load=info", "off", "weather"};
  return {"a", "b", "c", ""};
}

class SettingLevels : public LoaderTest {};

TEST_F(SettingLevels, TheHighestThatSaysSomethingWinsForEverySetting) {
  for (const SettingRow& row : setting_rows()) {
    if (row.key == "config") continue;
    const Values values = values_of(row);
    for (int given = 0; given < 8; ++given) {
      const bool environment_possible = (given & 2) && !row.variable.empty();
      SettingSources sources;
      if (given & 1) sources.arguments[std::string(row.key)] = values.argument;
      if (environment_possible) sources.environment[std::string(row.variable)] = values.environment;
      const std::string file = scratch().write(
          "tenon.toml", given & 4 ? fmt::format("{} = \"{}\"\n", row.key, values.file) : std::string("# nothing\n"));
      sources.config_files = {file};
      const Settings settings = resolve_settings(sources);
      SCOPED_TRACE(testing::Message() << row.key << " given " << given);
      ASSERT_TRUE(settings.status.ok()) << settings.status.message();
      const Origin& origin = settings.origins.at(std::string(row.key));
      const Level level = given & 1              ? Level::argument
                          : environment_possible ? Level::environment
                          : given & 4            ? Level::config
                                                 : Level::built_in;
      EXPECT_EQ(level_name(origin.level), level_name(level));
      EXPECT_EQ(origin.text, given & 1              ? values.argument
                             : environment_possible ? values.environment
                             : given & 4            ? values.file
                                                    : std::string(row.initial));
      EXPECT_EQ(origin.where, level == Level::environment ? std::string(row.variable)
                              : level == Level::config    ? file
                                                          : "");
    }
  }
}

TEST_F(SettingLevels, AnInvalidValueIsAnErrorAndNeverFallsThrough) {
  for (const SettingRow& row : setting_rows()) {
    const Values values = values_of(row);
    if (values.invalid.empty()) continue;
    for (Level level : {Level::argument, Level::environment, Level::config}) {
      if (level == Level::environment && row.variable.empty()) continue;
      SettingSources sources;
      const std::string key(row.key);
      sources.config_files = {scratch().write(
          "tenon.toml", fmt::format("{} = \"{}\"\n", key, level == Level::config ? values.invalid : values.file))};
      if (level == Level::environment) sources.environment[std::string(row.variable)] = values.invalid;
      if (level == Level::argument) {
        sources.arguments[key] = values.invalid;
        sources.environment[std::string(row.variable)] = values.environment;
      }
      const Settings settings = resolve_settings(sources);
      SCOPED_TRACE(testing::Message() << key << " at " << level_name(level));
      EXPECT_EQ(settings.status.code(), Code::invalid_argument);
      EXPECT_EQ(settings.status.message().find(fmt::format("the value '{}' of ", values.invalid)), 0u)
          << settings.status.message();
      EXPECT_NE(settings.status.message().find(describe_origin(key, settings.origins.at(key))), std::string::npos);
    }
  }
}

TEST_F(SettingLevels, AnInvalidValueBelowTheWinnerHurtsNobody) {
  SettingSources sources;
  sources.arguments["vm"] = "sync";
  sources.environment["TENON_VM"] = "sometimes";
  const Settings settings = resolve_settings(sources);
  EXPECT_TRUE(settings.status.ok());
  EXPECT_EQ(settings.vm, VmMode::sync);
}

TEST_F(SettingLevels, AnEmptyVariableSaysNothing) {
  SettingSources sources;
  sources.environment["TENON_VM"] = "";
  EXPECT_EQ(resolve_settings(sources).origins.at("vm").level, Level::built_in);
}

TEST_F(SettingLevels, TheUsersFileComesBeforeTheSystems) {
  SettingSources sources;
  sources.config_files = {scratch().write("user.toml", "vm = \"sync\"\n[provider.cpu]\nloops = \"own\"\n"),
                          scratch().write("system.toml",
                                          "vm = \"async\"\nthreads = 3\n[provider.cpu]\nloops = \"theirs\"\n"
                                          "cache = 1\n")};
  const Settings settings = resolve_settings(sources);
  EXPECT_EQ(settings.vm, VmMode::sync);
  EXPECT_EQ(settings.threads, 3);
  EXPECT_EQ(settings.config_files.size(), 2u);
  EXPECT_EQ(settings.provider_values.at("cpu").at("loops"), "own");
  EXPECT_EQ(settings.provider_values.at("cpu").at("cache"), "1");
}

TEST_F(SettingLevels, TenonConfigTakesThePlaceOfBoth) {
  SettingSources sources;
  sources.config_files = {scratch().write("user.toml", "threads = 3\n")};
  sources.environment["TENON_CONFIG"] = scratch().write("other.toml", "vm = \"sync\"\n");
  const Settings settings = resolve_settings(sources);
  EXPECT_EQ(settings.vm, VmMode::sync);
  EXPECT_EQ(settings.threads, 0);
  sources.environment["TENON_CONFIG"] = "/nowhere/tenon.toml";
  EXPECT_NE(resolve_settings(sources).status.message().find("TENON_CONFIG"), std::string::npos);
}

TEST_F(SettingLevels, TheNullDeviceIsAnEmptyFile) {
  SettingSources sources;
  sources.config_files = {scratch().write("user.toml", "threads = 3\n")};
  sources.environment["TENON_CONFIG"] = "/dev/null";
  const Settings settings = resolve_settings(sources);
  EXPECT_TRUE(settings.status.ok()) << settings.status.message();
  EXPECT_EQ(settings.config_files, std::vector<std::string>{"/dev/null"});
}

TEST_F(SettingLevels, MissingDefaultFilesAreNoError) {
  SettingSources sources;
  sources.config_files = {"/nowhere/tenon.toml"};
  EXPECT_TRUE(resolve_settings(sources).status.ok());
}

// As if HOME belonged to another user. The root user may search any folder, so it becomes nobody for a while.
TEST_F(SettingLevels, ADefaultFileInAClosedFolderIsAWarning) {
  const std::string path = scratch().write("closed/tenon.toml", "vm = \"sync\"\n");
  const std::string folder = path.substr(0, path.rfind('/'));
  ASSERT_EQ(chmod(folder.c_str(), 0), 0);
  SettingSources sources, named;
  sources.config_files = {path};
  named.environment["TENON_CONFIG"] = path;
  const uid_t user = geteuid();
  const auto become = [user](uid_t other) { return user != 0 || seteuid(other) == 0; };
  ASSERT_TRUE(become(65534));
  const Settings settings = resolve_settings(sources), asked = resolve_settings(named);
  ASSERT_TRUE(become(user));
  ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
  EXPECT_EQ(settings.status.message(), "");
  EXPECT_EQ(settings.warnings, std::vector<std::string>{fmt::format(
                                   "the config file '{}' is ignored: a folder above it may not be searched.", path)});
  EXPECT_FALSE(asked.status.ok()) << "the user wants this file";
}

TEST_F(SettingLevels, AFileThatIsNotTomlIsAnErrorWithItsPlace) {
  SettingSources sources;
  sources.config_files = {scratch().write("tenon.toml", "vm = \"sync\"\nthreads = = 2\n")};
  const Status status = resolve_settings(sources).status;
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.message().find("cannot be parsed: line 2"), std::string::npos) << status.message();
}

TEST_F(SettingLevels, AFileOthersCanWriteIsNotBelieved) {
  const std::string path = scratch().write("tenon.toml", "trust = \"any\"\n");
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  SettingSources sources;
  sources.config_files = {path};
  const Settings settings = resolve_settings(sources);
  EXPECT_EQ(settings.trust, Trust::owned);
  EXPECT_EQ(settings.status.message(), fmt::format("the file '{}' can be written by anyone (mode 0666).", path));
}

TEST_F(SettingLevels, ListsMayBeTomlLists) {
  SettingSources sources;
  sources.config_files = {
      scratch().write("tenon.toml", "providers = [\"cuda\", \"cpu\"]\nplugin_path = [\"/a\", \"/b\"]\n")};
  const Settings settings = resolve_settings(sources);
  EXPECT_EQ(settings.providers, (std::vector<std::string>{"cuda", "cpu"}));
  EXPECT_EQ(settings.plugin_path, (std::vector<std::string>{"/a", "/b"}));
}

TEST_F(SettingLevels, PrivilegedProcessesHaveNoEnvironment) {
  SettingSources sources;
  sources.privileged = true;
  sources.environment = {{"TENON_VM", "sync"}, {"TENON_CONFIG", "/nowhere"}, {"TENON_PLUGIN_PATH", "/tmp"}};
  const Settings settings = resolve_settings(sources);
  EXPECT_TRUE(settings.status.ok()) << settings.status.message();
  EXPECT_EQ(settings.vm, VmMode::async);
  EXPECT_TRUE(settings.plugin_path.empty());
  EXPECT_TRUE(settings.warnings.empty());
}

TEST_F(SettingLevels, UnknownNamesGetAWarningWithTheNearest) {
  SettingSources sources;
  sources.environment = {{"TENON_DEVCE", "cpu"}, {"TENON_SOMETHING_QUITE_DIFFERENT", "1"}};
  const std::string file = scratch().write("tenon.toml", "thread = 2\n");
  sources.config_files = {file};
  const Settings settings = resolve_settings(sources);
  EXPECT_TRUE(settings.status.ok());
  EXPECT_EQ(
      settings.warnings,
      (std::vector<std::string>{"the environment variable TENON_DEVCE is unknown; did you mean TENON_DEVICE?",
                                "the environment variable TENON_SOMETHING_QUITE_DIFFERENT is unknown.",
                                fmt::format("the setting 'thread' in '{}' is unknown; did you mean threads?", file)}));
}

TEST_F(SettingLevels, UnknownSectionsGetAWarningToo) {
  SettingSources sources;
  const std::string file = scratch().write("tenon.toml", "[cpu]\nloops = 1\n");
  sources.config_files = {file};
  const Settings settings = resolve_settings(sources);
  EXPECT_TRUE(settings.status.ok());
  EXPECT_EQ(settings.warnings,
            (std::vector<std::string>{fmt::format(
                "the section 'cpu' in '{}' is unknown; settings of providers stand in [provider.<name>].", file)}));
  scratch().write("tenon.toml", "[device]\nname = 1\n");
  EXPECT_EQ(resolve_settings(sources).status.code(), Code::invalid_argument);
}

TEST_F(SettingLevels, WarningsAreLoggedOnceWhenTheSettingsAreRead) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view topic, std::string_view message) {
    lines.push_back(fmt::format("{}: {}", topic, message));
  });
  set("TENON_DEVCE", "cpu");
  restart();
  settings();
  settings();
  set_log_sink({});
  EXPECT_EQ(
      lines,
      (std::vector<std::string>{"load: the environment variable TENON_DEVCE is unknown; did you mean TENON_DEVICE?"}));
  unsetenv("TENON_DEVCE");
}

TEST_F(SettingLevels, ArgumentsAreCheckedWhenSet) {
  EXPECT_EQ(set_argument("vm", "never").message(),
            "the value 'never' of the argument 'vm' is invalid: it may be one of async, sync.");
  EXPECT_EQ(set_argument("speed", "fast").message(), "the argument 'speed' is unknown.");
  EXPECT_EQ(set_argument("thread", "1").message(), "the argument 'thread' is unknown; did you mean threads?");
  const Settings& before = settings();
  EXPECT_TRUE(set_argument("vm", "sync").ok());
  EXPECT_EQ(settings().vm, VmMode::sync);
  EXPECT_EQ(before.vm, VmMode::async) << "a reference given out stays as it was";
}

TEST(SettingTable, HelpAndReadmeHaveEveryRow) {
  const std::string help = settings_help();
  for (const SettingRow& row : setting_rows()) {
    EXPECT_NE(help.find(row.help), std::string::npos) << row.key;
    EXPECT_FALSE(row.help.empty());
  }
  std::ifstream file(TENON_SETTINGS_README);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(text.find(settings_markdown()), std::string::npos) << "loader/settings/README.md must hold this table:\n"
                                                               << settings_markdown();
}

}  // namespace
}  // namespace tenon::loader
