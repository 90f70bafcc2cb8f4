#include "core/tensor/file_access.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "core/tensor/file_header.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::files {

FileReader::FileReader(std::string path)
    : path_(std::move(path)), descriptor_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat facts {};
  if (descriptor_ < 0 || fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    if (descriptor_ >= 0) close(descriptor_);
    throw Error(Code::not_found, fmt::format("There is no file {} that can be read.", path_));
  }
  size_ = static_cast<uint64_t>(facts.st_size);
}

FileReader::~FileReader() { close(descriptor_); }

void FileReader::read(uint64_t from, void* to, uint64_t bytes) const {
  uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        pread(descriptor_, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(from + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      refuse(fmt::format("The file {} cannot be read from byte {} on; bytes {} to {} were wanted.", path_, from + done,
                         from, from + bytes));
    }
    done += static_cast<uint64_t>(got);
  }
}

namespace {

// "<name>.0123abcd.new": the temporary name of a file, in the folder of its destination.
constexpr size_t kDigits = 8;
constexpr std::string_view kEnd = ".new";

bool is_beside(std::string_view entry, std::string_view name) {
  if (entry.size() != name.size() + 1 + kDigits + kEnd.size()) return false;
  if (entry.substr(0, name.size()) != name || entry[name.size()] != '.') return false;
  const std::string_view digits = entry.substr(name.size() + 1, kDigits);
  return entry.substr(entry.size() - kEnd.size()) == kEnd &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Removes the leftovers of earlier writers of the file `place`. A running writer holds a lock.
void clear_leftovers(const std::string& place) {
  namespace fs = std::filesystem;
  const fs::path path(place);
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!is_beside(entry->path().filename().native(), path.filename().native())) continue;
    const int left = open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (left < 0) continue;
    if (flock(left, LOCK_EX | LOCK_NB) == 0) unlink(entry->path().c_str());
    close(left);
  }
}

// True if the open file still has a name: no other process took it for a leftover before it was locked.
bool is_there(int descriptor) {
  struct stat facts {};
  return fstat(descriptor, &facts) == 0 && facts.st_nlink > 0;
}

}  // namespace

FileWriter::FileWriter(const std::string& path) : path_(path), place_(path) {
  std::error_code error;
  if (const std::filesystem::path aim = std::filesystem::canonical(path, error); !error)
    place_ = aim;  // the target of a link
  struct stat before {};
  const bool replaces = stat(place_.c_str(), &before) == 0;
  if (replaces && !S_ISREG(before.st_mode)) {
    descriptor_ = open(place_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail();
    return;
  }
  clear_leftovers(place_);
  while (descriptor_ < 0) {
    beside_ = fmt::format("{}.{:0{}x}{}", place_, std::random_device()(), kDigits, kEnd);
    descriptor_ = open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaces ? 0600 : 0666);
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) fail();
    flock(descriptor_, LOCK_EX);  // without locks, leftovers are not removed
    if (is_there(descriptor_)) break;
    close(std::exchange(descriptor_, -1));
  }
  if (replaces && fchmod(descriptor_, before.st_mode & 07777) != 0) fail();
}

FileWriter::~FileWriter() {
  if (descriptor_ < 0) return;
  if (!beside_.empty()) unlink(beside_.c_str());
  close(descriptor_);
}

void FileWriter::fail() const {
  const int cause = errno;
  if (descriptor_ >= 0 && !beside_.empty()) unlink(beside_.c_str());
  throw Error(cause == ENOENT ? Code::not_found : Code::invalid_argument,
              fmt::format("The file {} cannot be written: {}.", path_, std::strerror(cause)));
}

void FileWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void FileWriter::finish() {
  if (!beside_.empty()) {
    if (fsync(descriptor_) != 0 || rename(beside_.c_str(), place_.c_str()) != 0) fail();
    beside_.clear();
  }
  if (close(std::exchange(descriptor_, -1)) != 0) fail();
}

}  // namespace tenon::files
