#include "sdk/provider/modules/store.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sdk/provider/error.h"

namespace tenon::provider {
namespace {

// The header of a blob. The source, which is compared in full, and the binary follow it.
struct Head {
  char magic[8] = {'t', 'e', 'n', 'o', 'n', '-', 'k', '1'};
  uint64_t source_bytes = 0;
  uint64_t binary_bytes = 0;
  uint64_t hash = 0;  // hash of the binary
};

// FNV-1a.
uint64_t hash_of(const std::string& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

// False for a host of an earlier minor.
bool keeps_blobs(const ep_host* host) {
  return host->struct_size >= offsetof(ep_host, blob_put) + sizeof host->blob_put;
}

std::string key_of(const std::string& source) { return fmt::format("kernel module {:016x}", hash_of(source)); }

}  // namespace

std::string kept_binary(const ep_host* host, const std::string& source) {
  if (!keeps_blobs(host)) return {};
  std::string blob;
  const auto take = [](void* out, const void* data, uint64_t size) {
    static_cast<std::string*>(out)->assign(static_cast<const char*>(data), size);
  };
  if (host->blob_get(host, to_ep_string(key_of(source)), take, &blob) != EP_STATUS_OK) return {};
  Head head, expected;
  if (blob.size() < sizeof head) return {};
  std::memcpy(&head, blob.data(), sizeof head);
  const uint64_t rest = blob.size() - sizeof head;
  const bool fits = std::memcmp(head.magic, expected.magic, sizeof head.magic) == 0 &&
                    head.source_bytes == source.size() && rest >= source.size() &&
                    head.binary_bytes == rest - source.size() && blob.compare(sizeof head, source.size(), source) == 0;
  if (!fits) return {};
  std::string binary = blob.substr(sizeof head + source.size());
  return hash_of(binary) == head.hash ? binary : std::string();
}

void keep_binary(const ep_host* host, const std::string& source, const std::string& binary) {
  if (!keeps_blobs(host)) return;
  Head head;
  head.source_bytes = source.size();
  head.binary_bytes = binary.size();
  head.hash = hash_of(binary);
  std::string blob(reinterpret_cast<const char*>(&head), sizeof head);
  blob += source;
  blob += binary;
  host->blob_put(host, to_ep_string(key_of(source)), blob.data(), blob.size());
}

}  // namespace tenon::provider
