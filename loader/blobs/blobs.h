// Blobs: what providers keep on the user's disk for later runs (ep_host.blob_get and blob_put).
//
// A blob is one file below the user's cache folder. The file contains its format, its provider and its key, and ends in
// a hash of all of that and of the blob. A file that does not match in full is a miss: a damaged file, a file of
// another key with the same name, a file that another user could have written. Nothing is kept in a privileged process,
// with TENON_BLOBS=off, or without a folder that can be written and trusted.
//
// The files of all providers together hold at most `blob_room` bytes. The files that were not read for the longest time
// are removed first.
// Threads: every function is thread-safe. Processes: a file is replaced whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::loader {

constexpr uint64_t longest_blob_key = 4096;
constexpr uint64_t largest_blob = uint64_t{64} << 20;
constexpr uint64_t blob_room = uint64_t{256} << 20;

// The blob of `provider` under `key`, if one is kept.
std::optional<std::string> kept_blob(const std::string& provider, std::string_view key);

// Keeps `blob`. If it cannot be kept, the log says why.
void keep_blob(const std::string& provider, std::string_view key, std::string_view blob);

}  // namespace tenon::loader
