#include "loader/kept/kept.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "loader/log/log.h"
#include "loader/settings/settings.h"
#include "loader/settings/value.h"
#include "loader/trust/trust.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace

std::string user_cache_folder() {
  return settings().privileged ? std::string() : user_folder("XDG_CACHE_HOME", ".cache");
}

uint64_t fnv1a(std::string_view bytes) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * UINT64_C(0x100000001b3);
  return hash;
}

std::optional<std::string> read_kept(const std::string& path, uint64_t most) {
  if (path.empty() || access(path.c_str(), R_OK) != 0) return std::nullopt;
  const Result<CheckedFile> file = open_checked(path, settings().trust == Trust::owned);
  if (!file.ok()) {
    log(LogTopic::load, LogLevel::info, fmt::format("a kept file is not trusted: {}", file.status().message()));
    return std::nullopt;
  }
  if (file->identity.size > most) return std::nullopt;
  std::string bytes(file->identity.size, '\0');
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = pread(file->descriptor.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    at += static_cast<size_t>(count);
  }
  return bytes;
}

void make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    mkdir(path.substr(0, slash).c_str(), 0700);
  }
}

bool keep_file(const std::string& path, std::string_view bytes) {
  make_folders(path);
  std::string draft = fmt::format("{}.XXXXXX", path);
  const Descriptor file(mkostemp(draft.data(), O_CLOEXEC));
  if (file.get() < 0) return false;
  if (write_all(file.get(), bytes) && std::rename(draft.c_str(), path.c_str()) == 0) return true;
  unlink(draft.c_str());
  return false;
}

void drop_oldest(const std::string& folder, const Room& room) {
  namespace fs = std::filesystem;
  struct Entry {
    fs::file_time_type time;
    uint64_t bytes;
    fs::path path;
  };
  std::error_code failed;
  std::vector<Entry> entries;
  uint64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const uint64_t size = entry.file_size(failed);
    if (failed) continue;
    entries.push_back({entry.last_write_time(failed), size, entry.path()});
    bytes += size;
  }
  if (entries.size() <= room.files && bytes <= room.bytes) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
  uint64_t files = entries.size();
  for (const Entry& entry : entries) {
    if (files <= room.files / 2 && bytes <= room.bytes / 2) return;
    fs::remove(entry.path, failed);
    bytes -= entry.bytes;
    --files;
  }
}

}  // namespace tenon::loader
