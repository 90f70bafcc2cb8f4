#include "loader/probe/cache.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "loader/kept/kept.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

constexpr uint64_t most_entries = 128;
constexpr uint64_t most_bytes = 1 << 20;  // bytes of one result

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string this_boot() { return read_all("/proc/sys/kernel/random/boot_id"); }

}  // namespace

std::string file_state(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  return fmt::format("{} {} {} {}.{:09} {}", found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec, path);
}

ProbeCache::ProbeCache(std::string folder, const std::string& provider, std::string question)
    : folder_(std::move(folder)), question_(std::move(question)) {
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
  const std::optional<std::string> bytes = read_kept(path_, most_bytes);
  if (!bytes) return std::nullopt;
  const std::optional<Record> record = Record::decode(*bytes);
  if (!record || !holds(*record)) return std::nullopt;
  const std::string refusal = record->get("refusal");
  if (refusal.empty()) return Status();
  return Status(static_cast<Code>(std::atoi(record->get("code").c_str())), refusal, record->get("remedy"));
}

void ProbeCache::store(const Status& answer, const std::vector<std::string>& files,
                       std::chrono::seconds lifetime) const {
  if (path_.empty()) return;
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
  if (keep_file(path_, record.encode())) {
    drop_oldest(folder_, {.files = most_entries});
  } else {
    log(LogTopic::load, LogLevel::debug, fmt::format("the answer cannot be kept in '{}'.", path_));
  }
}

}  // namespace tenon::loader
