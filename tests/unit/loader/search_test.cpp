#include "loader/search/search.h"

#include <filesystem>

#include "fixture.h"

namespace tenon::loader {
namespace {

class Search : public LoaderTest {};

TEST_F(Search, FindsPluginsByNameAlone) {
  const std::string folder = scratch().make_folder("plugins");
  for (const char* name : {"libtenon_b.so", "libtenon_a.so", "libtenon.so", "libtenon-onnx.so", "libtenon_.so",
                           "libother_a.so", "libtenon_a.so.1", "libtenon_c.txt"}) {
    scratch().write(std::string("plugins/") + name, "");
  }
  const std::vector<FoundFile> found = find_plugins(folder).value();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "a");
  EXPECT_EQ(found[0].path, folder + "/libtenon_a.so");
  EXPECT_EQ(found[1].name, "b");
}

TEST_F(Search, AMissingFolderIsNotFound) {
  EXPECT_EQ(find_plugins("/nowhere/at/all").status().code(), Code::not_found);
  EXPECT_EQ(find_plugins(scratch().write("file", "")).status().code(), Code::not_found);
}

TEST_F(Search, FoldersComeInOrderAndOnce) {
  const std::string first = scratch().make_folder("first");
  const std::string second = scratch().make_folder("second");
  std::filesystem::create_symlink(first, scratch().path() + "/again");
  Settings settings;
  settings.plugin_path = {first, second, scratch().path() + "/again"};
  const std::vector<PluginFolder> folders = plugin_folders(settings);
  ASSERT_GE(folders.size(), 5u);
  EXPECT_EQ(folders[0].path, first);
  EXPECT_EQ(folders[0].source, "TENON_PLUGIN_PATH");
  EXPECT_EQ(folders[1].path, second);
  EXPECT_EQ(folders[2].path, data_folder());
  EXPECT_EQ(folders[2].source, "the user's folder");
  EXPECT_EQ(folders[3].path, library_folder() + "/tenon");
  EXPECT_EQ(folders[3].source, "beside the library");
  EXPECT_EQ(folders[4].source, "the system's folder");
}

TEST_F(Search, AddedFoldersComeBeforeTheOneBesideTheLibrary) {
  const std::string folder = scratch().make_folder("package");
  add_plugin_folder(folder, "a package");
  const std::vector<PluginFolder> folders = plugin_folders(Settings());
  ASSERT_GE(folders.size(), 3u);
  EXPECT_EQ(folders[0].source, "the user's folder");
  EXPECT_EQ(folders[1].path, folder);
  EXPECT_EQ(folders[1].source, "a package");
  EXPECT_EQ(folders[2].source, "beside the library");
}

TEST_F(Search, PluginsOfAnAddedFolderAreCandidatesUntilTheLoaderStartsAnew) {
  const std::string folder = scratch().make_folder("package");
  scratch().copy(broken_folder() + "/libtenon_sound.so", "package/libtenon_sound.so");
  add_plugin_folder(folder, "a package");
  EXPECT_EQ(candidate_of("sound", Stage::found).source, "a package");
  restart();
  for (const Candidate& candidate : explain(Stage::found)) EXPECT_NE(candidate.provider, "sound");
}

TEST_F(Search, PrivilegedProcessesSkipTheFoldersOfUsers) {
  Settings settings;
  settings.privileged = true;
  add_plugin_folder(scratch().make_folder("package"), "a package");
  for (const PluginFolder& folder : plugin_folders(settings)) {
    EXPECT_NE(folder.source, "the user's folder");
    EXPECT_NE(folder.source, "a package");
  }
}

TEST_F(Search, NeitherTheCurrentFolderNorAnEmptyElementIsSearched) {
  scratch().copy(broken_folder() + "/libtenon_sound.so", "here/libtenon_sound.so");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(scratch().path() + "/here");
  for (const char* value : {"", ":", "::", "/nowhere:", ":/nowhere"}) {
    set("TENON_PLUGIN_PATH", value);
    restart();
    for (const Candidate& candidate : explain(Stage::found)) EXPECT_NE(candidate.provider, "sound") << value;
    for (const SearchedFolder& folder : searched_folders()) EXPECT_EQ(folder.path.front(), '/') << value;
  }
  for (const char* value : {".", "./", "here", "..", "/nowhere:."}) {
    set("TENON_PLUGIN_PATH", value);
    restart();
    EXPECT_FALSE(open_device("sound").ok()) << value;
    EXPECT_NE(open_device("sound").status().message().find("is relative"), std::string::npos) << value;
  }
  std::filesystem::current_path(before);
}

TEST_F(Search, LibraryFolderIsWhereThisProgramIs) {
  EXPECT_EQ(library_folder(), std::filesystem::canonical("/proc/self/exe").parent_path().string());
}

}  // namespace
}  // namespace tenon::loader
