// Reads files in parts, and writes files that appear completely or not at all. Internal.
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
  // Errors: invalid_argument (the file is too short or cannot be read).
  void read(uint64_t from, void* to, uint64_t bytes) const;

 private:
  std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
};

// Writes a file next to its destination, as "<name>.0123abcd.new", and renames it at the end. So readers never see a
// partial file, and if several processes write the same file, the last one wins. The new file keeps the mode of the old
// one. Leftovers of writers that were killed are removed. A destination that is not a regular file (/dev/stdout) is
// written directly.
class TENON_API FileWriter {
 public:
  // Errors, here and below: invalid_argument (the file cannot be written, with the reason), not_found (no such folder).
  explicit FileWriter(const std::string& path);
  ~FileWriter();  // without `finish` no file remains
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::string_view bytes);
  // For code that writes to the descriptor directly. It must not close it.
  int descriptor() const { return descriptor_; }
  // Moves the file to its destination, with all bytes on the disk.
  void finish();

 private:
  [[noreturn]] void fail() const;

  std::string path_, place_;
  std::string beside_;  // empty: the destination is written directly
  int descriptor_ = -1;
};

}  // namespace tenon::files
