#include "core/tensor/file_access.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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

FileWriter::FileWriter(const std::string& path) : path_(path), place_(path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (const fs::path aim = fs::canonical(path, error); !error) place_ = aim;  // of a symbolic link
  if (!fs::exists(place_, error) || fs::is_regular_file(place_, error)) {
    beside_ = fmt::format("{}.{:08x}.new", place_, std::random_device()());
  }
  file_.open(beside_.empty() ? place_ : beside_, std::ios::binary);
  if (!file_) refuse(fmt::format("The file {} cannot be written.", path_));
}

FileWriter::~FileWriter() {
  if (!beside_.empty() && file_.is_open()) unlink(beside_.c_str());
}

void FileWriter::write(std::string_view bytes) {
  if (!file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    refuse(fmt::format("The file {} cannot be written.", path_));
  }
}

void FileWriter::finish() {
  bool ok = static_cast<bool>(file_.flush());
  if (ok && !beside_.empty()) {
    const int descriptor = open(beside_.c_str(), O_RDONLY | O_CLOEXEC);
    ok = descriptor >= 0 && fsync(descriptor) == 0;
    if (descriptor >= 0) close(descriptor);
    ok = ok && rename(beside_.c_str(), place_.c_str()) == 0;
  }
  if (!ok) refuse(fmt::format("The file {} cannot be written.", path_));
  file_.close();
}

}  // namespace tenon::files
