#include "loader/library/bundled.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>

namespace tenon::loader {
namespace {

// The names of the libraries that a library needs, and the folders of its RUNPATH or RPATH.
struct Needs {
  std::vector<std::string> names;
  std::vector<std::string> folders;
};

std::string with_origin(std::string folder, const std::string& origin) {
  for (const std::string_view mark : {"$ORIGIN", "${ORIGIN}"}) {
    for (size_t at = folder.find(mark); at != std::string::npos; at = folder.find(mark)) {
      folder.replace(at, mark.size(), origin);
    }
  }
  return folder;
}

Needs needs_of(const link_map& library) {
  const char* strings = nullptr;
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
  }
  Needs needs;
  const std::string path = library.l_name;
  const std::string origin = path.substr(0, path.rfind('/'));
  for (const ElfW(Dyn)* entry = library.l_ld; strings != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const char* text = strings + entry->d_un.d_val;
    if (entry->d_tag == DT_NEEDED) needs.names.emplace_back(text);
    if (entry->d_tag != DT_RUNPATH && entry->d_tag != DT_RPATH) continue;
    const std::string all = text;
    for (size_t at = 0; at <= all.size();) {
      const size_t end = std::min(all.find(':', at), all.size());
      needs.folders.push_back(with_origin(all.substr(at, end - at), origin));
      at = end + 1;
    }
  }
  return needs;
}

// The path of the library that the process has loaded as `name`; empty if there is none.
std::string mapped_as(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return {};
  link_map* library = nullptr;
  const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &library) == 0 && library != nullptr;
  std::string path = known ? library->l_name : "";
  dlclose(handle);
  return path;
}

bool is_one_file(const struct stat& a, const std::string& path) {
  struct stat b {};
  return stat(path.c_str(), &b) != 0 || (a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

}  // namespace

std::vector<Displaced> displaced_libraries(const void* address) {
  Dl_info info{};
  void* found = nullptr;
  if (dladdr1(address, &info, &found, RTLD_DL_LINKMAP) == 0 || found == nullptr) return {};
  const Needs needs = needs_of(*static_cast<const link_map*>(found));
  std::vector<Displaced> displaced;
  for (const std::string& name : needs.names) {
    for (const std::string& folder : needs.folders) {
      const std::string own = folder + "/" + name;
      struct stat file {};
      if (stat(own.c_str(), &file) != 0) continue;
      const std::string taken = mapped_as(name);
      if (!taken.empty() && !is_one_file(file, taken)) displaced.push_back({own, taken});
      break;
    }
  }
  return displaced;
}

}  // namespace tenon::loader
