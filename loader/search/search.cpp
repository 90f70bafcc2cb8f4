#include "loader/search/search.h"

#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

constexpr std::string_view file_prefix = "libtenon_";
constexpr std::string_view file_suffix = ".so";

std::string resolved(const std::string& path) {
  std::unique_ptr<char, decltype(&std::free)> text(realpath(path.c_str(), nullptr), &std::free);
  return text ? text.get() : path;
}

std::string parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

// The added folders and their lock. Never destroyed.
struct AddedFolders {
  std::mutex mutex;
  std::vector<PluginFolder> folders;
};
AddedFolders& added() {
  static auto* all = new AddedFolders;
  return *all;
}

}  // namespace

void add_plugin_folder(std::string path, std::string source) {
  const std::lock_guard lock(added().mutex);
  added().folders.push_back({std::move(path), std::move(source)});
}

void forget_plugin_folders() {
  const std::lock_guard lock(added().mutex);
  added().folders.clear();
}

std::string library_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&library_folder), &info) == 0 || !info.dli_fname) return {};
  // For the program itself dladdr returns argv[0], which is wrong once the working directory has changed.
  const std::string file = info.dli_fname[0] == '/' ? info.dli_fname : "/proc/self/exe";
  return parent(resolved(file));
}

std::vector<PluginFolder> plugin_folders(const Settings& settings) {
  std::vector<PluginFolder> all;
  for (const std::string& path : settings.plugin_path) all.push_back({path, "TENON_PLUGIN_PATH"});
  const std::string own = settings.privileged ? std::string() : user_folder("XDG_DATA_HOME", ".local/share");
  if (!own.empty()) all.push_back({fmt::format("{}/providers", own), "the user's folder"});
  if (!settings.privileged) {
    const std::lock_guard lock(added().mutex);
    all.insert(all.end(), added().folders.begin(), added().folders.end());
  }
  const std::string beside = library_folder();
  if (!beside.empty()) all.push_back({fmt::format("{}/tenon", beside), "beside the library"});
  for (const char* prefix : {"/usr/local/", "/usr/"}) {
    all.push_back({fmt::format("{}" TENON_LIBRARY_FOLDER "/tenon", prefix), "the system's folder"});
  }
  std::vector<PluginFolder> once;
  std::vector<std::string> seen;
  for (PluginFolder& folder : all) {
    std::string real = resolved(folder.path);
    if (std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
    seen.push_back(std::move(real));
    once.push_back(std::move(folder));
  }
  return once;
}

Result<std::vector<FoundFile>> find_plugins(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), &closedir);
  if (!entries) {
    const int error = errno;
    return Status(error == ENOENT || error == ENOTDIR ? Code::not_found : Code::invalid_argument,
                  fmt::format("the folder '{}' cannot be read: {}.", folder, std::strerror(error)));
  }
  std::vector<FoundFile> found;
  while (const dirent* entry = readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(file_prefix) || !name.ends_with(file_suffix)) continue;
    if (name.size() <= file_prefix.size() + file_suffix.size()) continue;
    found.push_back(
        {fmt::format("{}/{}", folder, name),
         std::string(name.substr(file_prefix.size(), name.size() - file_prefix.size() - file_suffix.size()))});
  }
  std::sort(found.begin(), found.end(), [](const FoundFile& a, const FoundFile& b) { return a.name < b.name; });
  return found;
}

}  // namespace tenon::loader
