#include "core/codegen/tune/data_base.h"

#include <memory>
#include <utility>

#include "loader/kept/kept.h"
#include "loader/kept/lines.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

constexpr uint64_t kMostFiles = 64;  // devices and compilers; beyond that the oldest files are removed

std::string head_of(const DeviceState* device, const Dialect& dialect) {
  return fmt::format(R"({{"tenon_tune": 1, "provider": {}, "device": {}, "dialect": {}, "compiler": {}}})",
                     quoted_json(device->opened->provider), quoted_json(device->opened->info.fingerprint),
                     dialect.info.dialect, quoted_json(dialect.compiler));
}

std::string folder() {
  const std::string own = loader::user_cache_folder();
  return own.empty() ? own : fmt::format("{}/tune", own);
}

}  // namespace

DataBase::DataBase(std::string path, std::string head) : path_(std::move(path)), head_(std::move(head)) {
  for (const std::string& line : loader::read_lines(path_, head_, kMostBytes)) {
    if (std::optional<TunedLine> tuned = parse_line(line)) lines_[tuned->space] = *tuned;
  }
}

std::optional<TunedLine> DataBase::find(std::string_view space) const {
  const std::lock_guard lock(mutex_);
  const auto found = lines_.find(space);
  if (found == lines_.end()) return std::nullopt;
  return found->second;
}

bool DataBase::keep(const TunedLine& tuned) {
  {
    const std::lock_guard lock(mutex_);
    lines_[tuned.space] = tuned;
  }
  return loader::append_line(path_, head_, line_of(tuned), kMostBytes);
}

DataBase& data_base_of(const DeviceState* device, const Dialect& dialect) {
  static std::mutex& mutex = *new std::mutex;  // never destroyed: programs may end after static objects
  static auto& all = *new std::map<std::string, std::unique_ptr<DataBase>>;
  const std::string head = head_of(device, dialect);
  const std::lock_guard lock(mutex);
  std::unique_ptr<DataBase>& one = all[head];
  if (one == nullptr) {
    const std::string own = folder();
    if (!own.empty()) loader::drop_oldest(own, {.files = kMostFiles});
    const std::string path =
        own.empty() ? own : fmt::format("{}/{}-{:016x}.jsonl", own, device->opened->provider, loader::fnv1a(head));
    one = std::make_unique<DataBase>(path, head);
  }
  return *one;
}

}  // namespace tenon::codegen
