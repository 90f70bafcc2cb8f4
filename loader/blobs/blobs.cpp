#include "loader/blobs/blobs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>

#include "loader/kept/kept.h"
#include "loader/log/log.h"
#include "loader/settings/settings.h"
#include "loader/trust/trust.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

constexpr std::string_view magic = "tenon blob 1\n";

std::string folder() {
  if (settings().blobs == Blobs::off) return {};
  const std::string own = user_cache_folder();
  return own.empty() ? own : fmt::format("{}/blobs", own);
}

std::string path_of(const std::string& folder, const std::string& provider, std::string_view key) {
  return fmt::format("{}/{}-{:016x}", folder, provider, fnv1a(key));
}

void append_number(std::string* bytes, uint64_t number) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_text(std::string* bytes, std::string_view text) {
  append_number(bytes, text.size());
  bytes->append(text);
}

// Everything before the blob in the file.
std::string head_of(const std::string& provider, std::string_view key, uint64_t size) {
  std::string head(magic);
  append_text(&head, provider);
  append_text(&head, key);
  append_number(&head, size);
  return head;
}

// The blob in the file contents `bytes`, if the file is complete and belongs to this key.
std::optional<std::string> blob_in(std::string bytes, const std::string& provider, std::string_view key) {
  const uint64_t fixed = head_of(provider, key, 0).size() + sizeof(uint64_t);
  if (bytes.size() <= fixed) return std::nullopt;
  const uint64_t size = bytes.size() - fixed;
  const std::string head = head_of(provider, key, size);
  uint64_t hash = 0;
  std::memcpy(&hash, bytes.data() + head.size() + size, sizeof hash);
  if (bytes.compare(0, head.size(), head) != 0) return std::nullopt;
  if (fnv1a(std::string_view(bytes).substr(0, head.size() + size)) != hash) return std::nullopt;
  return bytes.substr(head.size(), size);
}

}  // namespace

std::optional<std::string> kept_blob(const std::string& provider, std::string_view key) {
  const std::string here = folder();
  if (here.empty() || key.empty() || key.size() > longest_blob_key) return std::nullopt;
  const std::string path = path_of(here, provider, key);
  const std::optional<std::string> bytes = read_kept(path, largest_blob + longest_blob_key + 1024);
  std::optional<std::string> blob;
  if (bytes) blob = blob_in(*bytes, provider, key);
  if (blob) static_cast<void>(utimensat(AT_FDCWD, path.c_str(), nullptr, 0));  // used now
  return blob;
}

void keep_blob(const std::string& provider, std::string_view key, std::string_view blob) {
  const std::string here = folder();
  if (here.empty() || key.empty() || key.size() > longest_blob_key || blob.empty()) return;
  if (blob.size() > largest_blob) {
    log(LogTopic::compile, LogLevel::info,
        fmt::format("a blob of {} bytes of the provider '{}' is not kept: it is larger than {} bytes.", blob.size(),
                    provider, largest_blob));
    return;
  }
  std::string bytes = head_of(provider, key, blob.size());
  bytes.append(blob);
  append_number(&bytes, fnv1a(bytes));
  const std::string path = path_of(here, provider, key);
  if (!keep_file(path, bytes)) {
    log(LogTopic::compile, LogLevel::debug, fmt::format("a blob cannot be kept in '{}'.", path));
    return;
  }
  drop_oldest(here, {.bytes = blob_room});
}

}  // namespace tenon::loader
