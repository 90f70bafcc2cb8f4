// ScratchFolder: a folder for one test. It is deleted with its content.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "primitives/text/format.h"

namespace tenon {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "tenon-XXXXXX";  // mkdtemp writes over the X
    const char* made = mkdtemp(pattern.data());
    if (made != nullptr) path_ = std::filesystem::canonical(made);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string make_folder(const std::string& name) const {
    std::filesystem::create_directories(fmt::format("{}/{}", path_, name));
    return fmt::format("{}/{}", path_, name);
  }
  std::string write(const std::string& name, const std::string& content) const {
    const std::string path = room_for(name);
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  // Copies a file into `name`.
  std::string copy(const std::string& from, const std::string& name) const {
    const std::string path = room_for(name);
    std::filesystem::copy_file(from, path, std::filesystem::copy_options::overwrite_existing);
    return path;
  }

 private:
  std::string room_for(const std::string& name) const {
    const std::string path = fmt::format("{}/{}", path_, name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    return path;
  }

  std::string path_;
};

}  // namespace tenon
