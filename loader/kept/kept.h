// Kept: small files in the user's cache folder, which later runs read. A reader sees a file whole or not at all,
// believes only what the user or root alone could have written, and a folder has a bound.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::loader {

// Where this user's programs keep files of Tenon ($XDG_CACHE_HOME/tenon, else ~/.cache/tenon). Empty: nowhere, as in a
// privileged process.
std::string user_cache_folder();

// A hash for names and damage. It is no protection against people: the owners of files are.
uint64_t fnv1a(std::string_view bytes);

// The bytes of a file; nothing if the file is not there, is larger than `most`, or may be another's (with a line in the
// log).
std::optional<std::string> read_kept(const std::string& path, uint64_t most);

// Makes the folder of `path` and its parents, for the user alone where they are new.
void make_folders(const std::string& path);

// Writes `bytes` as the file `path`, in place of what was there, and makes its folders. False: it could not. Another
// process sees the old file or the new one, never a part.
bool keep_file(const std::string& path, std::string_view bytes);

struct Room {
  uint64_t files = std::numeric_limits<uint64_t>::max();
  uint64_t bytes = std::numeric_limits<uint64_t>::max();
};

// If the files of `folder` are more than `room` allows, removes those with the oldest times until half of it is free.
void drop_oldest(const std::string& folder, const Room& room);

}  // namespace tenon::loader
