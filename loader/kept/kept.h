// Kept: small files in the user's cache folder, which later runs read. A reader sees a whole file or none, and trusts
// only files that nobody but the user or root could have written. Folders have a size limit.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::loader {

// The folder for this user's Tenon files ($XDG_CACHE_HOME/tenon, else ~/.cache/tenon). Empty if there is none, as in a
// privileged process.
std::string user_cache_folder();

// A hash for file names and for finding damage. It does not protect against forgery; the check of the file's owner
// does.
uint64_t fnv1a(std::string_view bytes);

// The bytes of a file. Nothing if the file is missing, is larger than `most`, or could have been written by another
// user (which is logged).
std::optional<std::string> read_kept(const std::string& path, uint64_t most);

// Makes the folder of `path` and its parents. New folders are accessible to the user alone.
void make_folders(const std::string& path);

// Writes `bytes` to the file `path`, replaces an existing file and makes missing folders. Returns false if that failed.
// Other processes see the old file or the new one, never a part.
bool keep_file(const std::string& path, std::string_view bytes);

struct Room {
  uint64_t files = std::numeric_limits<uint64_t>::max();
  uint64_t bytes = std::numeric_limits<uint64_t>::max();
};

// If the files of `folder` exceed `room`, removes the files with the oldest times until half of the room is free.
void drop_oldest(const std::string& folder, const Room& room);

}  // namespace tenon::loader
