// Files that are read by parts, and files that are there whole or not at all. Internal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/device/export.h"

namespace tenon::files {

// A file that is open for reading. Threads: any.
class FileReader {
 public:
  // Errors: not_found.
  explicit FileReader(std::string path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // Errors: invalid_argument (the file ends before, or cannot be read).
  void read(uint64_t from, void* to, uint64_t bytes) const;

 private:
  std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
};

// Writes a file beside its place, as "<name>.0123abcd.new", and moves it there at the end. So nobody sees a part of it,
// and of several processes that write the same file the last one wins. The new file has the mode of the old one. What
// writers that were killed have left is removed. What is no file of the disk (/dev/stdout) is written where it is.
class TENON_API FileWriter {
 public:
  // Errors: invalid_argument (the file cannot be written, and why) and not_found (no such folder), here and below.
  explicit FileWriter(const std::string& path);
  ~FileWriter();  // without `finish` nothing is left
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::string_view bytes);
  // For code that writes by itself; it does not close it.
  int descriptor() const { return descriptor_; }
  // The file is on the disk, in its place.
  void finish();

 private:
  [[noreturn]] void fail() const;

  std::string path_, place_;
  std::string beside_;  // empty: it is written in its place
  int descriptor_ = -1;
};

}  // namespace tenon::files
