// Reads untrusted files: ranges of files, and external data below one folder.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "primitives/status/status.h"

namespace tenon::onnx {

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A file that stays open, so that parts of it can be read later. Immutable. Threads: any.
class OpenFile {
 public:
  // Opens the regular file at `path`. Errors: not_found; invalid_argument (not a regular file, larger than `limit`).
  static Result<std::shared_ptr<const OpenFile>> open(const std::string& path, uint64_t limit);
  // Takes over `file`, which is open as `path`. Errors: invalid_argument (not a regular file).
  static Result<std::shared_ptr<const OpenFile>> of(Descriptor file, const std::string& path);

  uint64_t size() const { return size_; }
  // Reads `length` bytes at `offset`. Errors name the file: it has changed since it was opened, it became shorter, or
  // reading failed.
  Status read(uint64_t offset, uint64_t length, void* out) const;

 private:
  OpenFile() = default;
  Status check_unchanged() const;

  std::string path_;
  Descriptor file_;
  uint64_t size_ = 0;
  int64_t written_[2] = {};  // time of the last modification: seconds and nanoseconds
};

// Reads `length` bytes at `offset` of an open file. Errors: invalid_argument if the file has fewer.
Status read_exactly(int file, uint64_t offset, uint64_t length, void* data);

// Files below one folder, under the relative names that a model gives ("..": refused). A link is followed if it ends in
// the folder or, for a snapshot in Hugging Face's cache, in the `blobs` folder of that cache. Special files and files
// with hard links elsewhere are refused.
class ExternalFiles {
 public:
  // With an empty `root` no file may be opened.
  explicit ExternalFiles(std::string root) : root_(std::move(root)) {}

  // Reads `length` bytes at `offset` of the file `location` into `data`. The caller has checked the range against
  // size().
  Status read(std::string_view location, uint64_t offset, uint64_t length, void* data);
  // Like `read`, as a function that outlives this object. Empty if the range is not in the file, or if the file may
  // have to be closed because too many files are open.
  std::function<Status(void* out)> reader(std::string_view location, uint64_t offset, uint64_t length);
  // The size of the file. Opens and checks the file first.
  Result<uint64_t> size(std::string_view location);

 private:
  Result<std::shared_ptr<const OpenFile>> open(std::string_view location);

  std::string root_;
  Descriptor folder_;
  std::map<std::string, std::shared_ptr<const OpenFile>, std::less<>> opened_;
};

}  // namespace tenon::onnx
