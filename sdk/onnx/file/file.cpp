#include "sdk/onnx/file/file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <utility>

#include "primitives/text/format.h"

namespace tenon::onnx {
namespace {

// Limit of external files that are open at a time.
constexpr size_t kMaxOpenFiles = 256;
// Limit of files that stay open as long as the model, for weights that are read later.
constexpr size_t kMaxKeptFiles = 64;

std::string why(int error) { return std::strerror(error); }

bool names_parent(std::string_view location) {
  for (size_t at = 0; at <= location.size();) {
    const size_t end = std::min(location.find('/', at), location.size());
    if (location.substr(at, end - at) == "..") return true;
    at = end + 1;
  }
  return false;
}

// Opens a file below `folder`: with openat2 if the kernel has it, else one component at a time without following links.
int open_beneath(int folder, const std::string& location) {
  constexpr uint64_t kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY;
  open_how how{};
  how.flags = kFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long fd = syscall(SYS_openat2, folder, location.c_str(), &how, sizeof how);
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  Descriptor at(fcntl(folder, F_DUPFD_CLOEXEC, 0));
  for (size_t begin = 0;;) {
    const size_t end = location.find('/', begin);
    const std::string part = location.substr(begin, end == std::string::npos ? end : end - begin);
    if (end == std::string::npos) return openat(at.get(), part.c_str(), static_cast<int>(kFlags));
    if (!part.empty()) {
      Descriptor next(openat(at.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next) return -1;
      at = std::move(next);
    }
    begin = end + 1;
  }
}

std::string path_of(int file) {
  std::string path(PATH_MAX, '\0');
  const ssize_t length = readlink(fmt::format("/proc/self/fd/{}", file).c_str(), path.data(), path.size());
  path.resize(length < 0 ? 0 : static_cast<size_t>(length));
  return path;
}

bool lies_in(std::string_view path, std::string_view folder) {
  return !folder.empty() && path.size() > folder.size() + 1 && path.substr(0, folder.size()) == folder &&
         path[folder.size()] == '/';
}

// For a folder ".../models--x/snapshots/<revision>[/...]" of Hugging Face's cache, the folder ".../models--x/blobs"
// that its links lead to. Empty for any other folder.
std::string blobs_beside(const std::string& folder) {
  constexpr std::string_view kSnapshots = "/snapshots/";
  const size_t at = folder.rfind(kSnapshots);
  if (at == std::string::npos || at + kSnapshots.size() == folder.size()) return {};
  return folder.substr(0, at) + "/blobs";
}

// Counts the names (hard links) of the file `wanted` in the folders and their subfolders.
uint64_t names_in(std::initializer_list<std::string> folders, const struct stat& wanted) {
  namespace fs = std::filesystem;
  uint64_t names = 0;
  for (const std::string& folder : folders) {
    std::error_code error;
    if (folder.empty()) continue;
    const auto skip = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator at(folder, skip, error), end; !error && at != end; at.increment(error)) {
      struct stat info {};
      const bool found = lstat(at->path().c_str(), &info) == 0;
      names += found && info.st_ino == wanted.st_ino && info.st_dev == wanted.st_dev ? 1 : 0;
    }
  }
  return names;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Status read_exactly(int fd, uint64_t offset, uint64_t length, void* data) {
  auto* out = static_cast<char*>(data);
  while (length > 0) {
    const ssize_t got = pread(fd, out, std::min<uint64_t>(length, uint64_t{1} << 30), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status(Code::internal, fmt::format("Reading failed: {}.", why(errno)));
    if (got == 0) return Status(Code::invalid_argument, "The file became shorter while it was read.");
    out += got;
    offset += static_cast<uint64_t>(got);
    length -= static_cast<uint64_t>(got);
  }
  return {};
}

Result<std::shared_ptr<const OpenFile>> OpenFile::open(const std::string& path, uint64_t limit) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) {
    return Status(errno == ENOENT ? Code::not_found : Code::invalid_argument,
                  fmt::format("'{}' cannot be opened: {}.", path, why(errno)));
  }
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<const OpenFile> made, of(std::move(file), path));
  if (made->size_ > limit) {
    return Status(Code::invalid_argument,
                  fmt::format("'{}' has {} bytes; at most {} are read.", path, made->size_, limit));
  }
  return made;
}

Result<std::shared_ptr<const OpenFile>> OpenFile::of(Descriptor file, const std::string& path) {
  struct stat info {};
  if (fstat(file.get(), &info) != 0)
    return Status(Code::internal, fmt::format("'{}' cannot be examined: {}.", path, why(errno)));
  if (!S_ISREG(info.st_mode)) return Status(Code::invalid_argument, fmt::format("'{}' is not a regular file.", path));
  std::shared_ptr<OpenFile> made(new OpenFile);
  made->path_ = path;
  made->file_ = std::move(file);
  made->size_ = static_cast<uint64_t>(info.st_size);
  made->written_[0] = info.st_mtim.tv_sec;
  made->written_[1] = info.st_mtim.tv_nsec;
  return std::shared_ptr<const OpenFile>(std::move(made));
}

Status OpenFile::read(uint64_t offset, uint64_t length, void* out) const {
  const Status status = read_exactly(file_.get(), offset, length, out);
  return (status.ok() ? check_unchanged() : status).with_context(fmt::format("  while reading '{}'", path_));
}

Status OpenFile::check_unchanged() const {
  struct stat info {};
  if (fstat(file_.get(), &info) != 0) return Status(Code::internal, fmt::format("Reading failed: {}.", why(errno)));
  const bool same = static_cast<uint64_t>(info.st_size) == size_ && info.st_mtim.tv_sec == written_[0] &&
                    info.st_mtim.tv_nsec == written_[1];
  if (same) return {};
  return Status(Code::invalid_argument, "The file was changed after it was opened.",
                "Load the model again. To replace the file of a model in use, write another one and rename it.");
}

Result<std::shared_ptr<const OpenFile>> ExternalFiles::open(std::string_view location) {
  if (const auto found = opened_.find(location); found != opened_.end()) return found->second;
  const std::string name(location);
  const auto refuse = [&](std::string_view what, std::string remedy = {}) {
    return Status(Code::invalid_argument, fmt::format("External data '{}' {}.", name, what), std::move(remedy));
  };
  if (root_.empty())
    return refuse("cannot be read: no folder for external data was given", "Set Options::external_data_root.");
  if (location.empty() || location.find('\0') != std::string_view::npos) return refuse("has no usable name");
  if (location.front() == '/') return refuse(fmt::format("is an absolute path; it must be relative to '{}'", root_));
  if (names_parent(location)) return refuse(fmt::format("names a parent folder; it must lie below '{}'", root_));
  if (!folder_) {
    folder_ = Descriptor(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder_)
      return Status(Code::not_found,
                    fmt::format("The folder '{}' for external data cannot be opened: {}.", root_, why(errno)));
  }
  Descriptor descriptor(open_beneath(folder_.get(), name));
  const std::string folder = path_of(folder_.get()), blobs = blobs_beside(folder);
  if (!descriptor && (errno == ELOOP || errno == EXDEV)) {
    // Asks the kernel for the path of the opened file, because only the end of the link counts. Nothing is read before.
    const Descriptor aim(openat(folder_.get(), name.c_str(), O_PATH | O_CLOEXEC));
    const std::string end = aim ? path_of(aim.get()) : std::string();
    if (aim && !lies_in(end, folder) && !lies_in(end, blobs)) {
      return refuse(fmt::format("is a symbolic link to '{}', which lies neither in '{}'{}", end, folder,
                                blobs.empty() ? " nor in the 'blobs' of a Hugging Face cache"
                                              : fmt::format(" nor in '{}'", blobs)),
                    fmt::format("Copy the file itself into '{}'.", root_));
    }
    struct stat info {};
    if (aim && fstat(aim.get(), &info) == 0 && !S_ISREG(info.st_mode)) return refuse("is not a regular file");
    if (aim) {
      descriptor = Descriptor(::open(fmt::format("/proc/self/fd/{}", aim.get()).c_str(), O_RDONLY | O_CLOEXEC));
    }
  }
  if (!descriptor) {
    if (errno == ENOENT)
      return Status(Code::not_found, fmt::format("External data '{}' does not exist in '{}'.", name, root_));
    return refuse(fmt::format("cannot be opened in '{}': {}", root_, why(errno)));
  }
  struct stat info {};
  if (fstat(descriptor.get(), &info) != 0) return refuse(fmt::format("cannot be examined: {}", why(errno)));
  if (!S_ISREG(info.st_mode)) return refuse("is not a regular file");
  if (info.st_nlink != 1 && names_in({folder, blobs}, info) < info.st_nlink) {
    return refuse(fmt::format("is a hard link: the same file has another name, which is not in '{}'", folder),
                  "Copy the file itself.");
  }
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<const OpenFile> opened, OpenFile::of(std::move(descriptor), name));
  if (opened_.size() >= kMaxOpenFiles) opened_.erase(opened_.begin());
  return opened_.emplace(name, std::move(opened)).first->second;
}

Result<uint64_t> ExternalFiles::size(std::string_view location) {
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<const OpenFile> file, open(location));
  return file->size();
}

std::function<Status(void* out)> ExternalFiles::reader(std::string_view location, uint64_t offset, uint64_t length) {
  const Result<std::shared_ptr<const OpenFile>> file = open(location);
  if (!file.ok() || opened_.size() > kMaxKeptFiles) return {};
  if (offset > file.value()->size() || length > file.value()->size() - offset) return {};
  return [file = file.value(), offset, length](void* out) { return file->read(offset, length, out); };
}

Status ExternalFiles::read(std::string_view location, uint64_t offset, uint64_t length, void* data) {
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<const OpenFile> file, open(location));
  if (offset > file->size() || length > file->size() - offset) {
    return Status(Code::invalid_argument,
                  fmt::format("External data '{}' has {} bytes; a tensor needs {} bytes at offset {}.", location,
                              file->size(), length, offset));
  }
  return file->read(offset, length, data);
}

}  // namespace tenon::onnx
