#include "loader/probe/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "loader/log/log.h"
#include "loader/trust/trust.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

constexpr size_t most_entries = 128;

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string this_boot() { return read_all("/proc/sys/kernel/random/boot_id"); }

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * UINT64_C(0x100000001b3);
  return hash;
}

// Makes `folder` and its parents, for the user alone where they are new.
bool make_folder(const std::string& folder) {
  for (size_t slash = folder.find('/', 1); slash != std::string::npos; slash = folder.find('/', slash + 1)) {
    mkdir(folder.substr(0, slash).c_str(), 0700);
  }
  mkdir(folder.c_str(), 0700);
  return access(folder.c_str(), W_OK | X_OK) == 0;
}

// Another process sees the old file or the new one, never a part.
bool replace_file(const std::string& path, const std::string& bytes) {
  std::string draft = fmt::format("{}.XXXXXX", path);
  const Descriptor file(mkostemp(draft.data(), O_CLOEXEC));
  if (file.get() < 0) return false;
  const bool written = write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (written && std::rename(draft.c_str(), path.c_str()) == 0) return true;
  unlink(draft.c_str());
  return false;
}

}  // namespace

std::string file_state(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  return fmt::format("{} {} {} {}.{:09} {}", found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec, path);
}

ProbeCache::ProbeCache(std::string folder, const std::string& provider, std::string question, bool check_owners)
    : folder_(std::move(folder)), question_(std::move(question)), check_owners_(check_owners) {
  if (!folder_.empty()) path_ = fmt::format("{}/{}-{:016x}", folder_, provider, fnv1a(question_));
}

bool ProbeCache::holds(const Record& record) const {
  if (record.get("question") != question_ || record.get("boot") != this_boot()) return false;
  for (const std::string& state : record.all("file")) {
    const size_t slash = state.find('/');
    if (slash == std::string::npos || file_state(state.substr(slash)) != state) return false;
  }
  return seconds_now() < std::atoll(record.get("until").c_str());
}

std::optional<Status> ProbeCache::load() const {
  if (path_.empty() || access(path_.c_str(), R_OK) != 0) return std::nullopt;
  const Result<CheckedFile> file = open_checked(path_, check_owners_);
  if (!file.ok()) {
    log(LogTopic::load, LogLevel::info, fmt::format("a kept answer is not believed: {}", file.status().message()));
    return std::nullopt;
  }
  const std::optional<Record> record = Record::decode(read_all(path_));
  if (!record || !holds(*record)) return std::nullopt;
  const std::string refusal = record->get("refusal");
  if (refusal.empty()) return Status();
  return Status(static_cast<Code>(std::atoi(record->get("code").c_str())), refusal, record->get("remedy"));
}

void ProbeCache::store(const Status& answer, const std::vector<std::string>& files,
                       std::chrono::seconds lifetime) const {
  if (path_.empty() || !make_folder(folder_)) return;
  Record record;
  record.add("question", question_);
  record.add("boot", this_boot());
  record.add("until", fmt::format("{}", seconds_now() + lifetime.count()));
  for (const std::string& file : files) {
    if (std::string state = file_state(file); !state.empty()) record.add("file", std::move(state));
  }
  if (!answer.ok()) {
    record.add("refusal", answer.message());
    record.add("remedy", answer.remedy());
    record.add("code", fmt::format("{}", static_cast<int>(answer.code())));
  }
  make_room();
  if (!replace_file(path_, record.encode())) {
    log(LogTopic::load, LogLevel::debug, fmt::format("the answer cannot be kept in '{}'.", path_));
  }
}

// Removes the oldest answers, so that many folders and settings fill no disk.
void ProbeCache::make_room() const {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::vector<std::pair<fs::file_time_type, fs::path>> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, failed)) {
    entries.emplace_back(entry.last_write_time(failed), entry.path());
  }
  if (entries.size() < most_entries) return;
  std::sort(entries.begin(), entries.end());
  entries.resize(entries.size() - most_entries / 2);
  for (const auto& [time, path] : entries) fs::remove(path, failed);
}

}  // namespace tenon::loader
