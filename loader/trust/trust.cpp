#include "loader/trust/trust.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "primitives/text/format.h"
#include "primitives/text/visible.h"

namespace tenon::loader {
namespace {

std::string octal(mode_t mode) { return fmt::format("{:04o}", mode & 07777); }

struct Account {
  std::string name;
  gid_t group = 0;
  bool found = false;
};

Account account_of(uid_t id) {
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* result = nullptr;
  if (getpwuid_r(id, &entry, buffer.data(), buffer.size(), &result) != 0 || !result) return {};
  return {entry.pw_name, entry.pw_gid, true};
}

std::string user_name(uid_t id) {
  const Account account = account_of(id);
  const std::string number = fmt::format("user id {}", id);
  return account.found ? fmt::format("{} ({})", quoted(account.name), number) : number;
}

struct Group {
  std::string name;
  std::vector<std::string> members;
};

Group group_of(gid_t id) {
  std::vector<char> buffer(65536);
  group entry{};
  group* result = nullptr;
  if (getgrgid_r(id, &entry, buffer.data(), buffer.size(), &result) != 0 || !result) return {};
  Group found{entry.gr_name, {}};
  for (char** member = entry.gr_mem; member && *member; ++member) found.members.emplace_back(*member);
  return found;
}

std::string group_name(gid_t id) {
  const Group found = group_of(id);
  const std::string number = fmt::format("group id {}", id);
  return found.name.empty() ? number : fmt::format("{} ({})", quoted(found.name), number);
}

// True if `owner` is the only member of the group `id`: it is the owner's primary group, has the owner's name and no
// other member, and is not the primary group of another account.
bool is_own_group(gid_t id, uid_t owner) {
  const Account account = account_of(owner);
  if (!account.found || account.group != id) return false;
  const Group found = group_of(id);
  if (found.name != account.name) return false;
  for (const std::string& member : found.members) {
    if (member != account.name) return false;
  }
  return !is_group_of_another("/etc/passwd", id, owner);
}

// The layout of system.posix_acl_access: a version word, then entries. See acl(5) and linux/posix_acl_xattr.h.
struct AccessEntry {
  uint16_t tag, permissions;
  uint32_t id;
};
constexpr uint32_t access_version = 2;
constexpr uint16_t tag_user = 0x02, tag_group_owner = 0x04, tag_group = 0x08, tag_mask = 0x10;
constexpr uint16_t permission_write = 2;

std::optional<std::vector<AccessEntry>> access_entries(const std::string& raw) {
  uint32_t version = 0;
  if (raw.size() < sizeof version) return std::nullopt;
  std::memcpy(&version, raw.data(), sizeof version);
  if (version != access_version || (raw.size() - sizeof version) % sizeof(AccessEntry) != 0) return std::nullopt;
  std::vector<AccessEntry> entries((raw.size() - sizeof version) / sizeof(AccessEntry));
  if (!entries.empty()) std::memcpy(entries.data(), raw.data() + sizeof version, entries.size() * sizeof(AccessEntry));
  return entries;
}

Complaint stranger_in_list(const Ownership& ownership, uid_t user) {
  const std::optional<std::vector<AccessEntry>> entries = access_entries(ownership.access_list);
  if (!entries) return {"has an access list that cannot be understood", "setfacl -b %"};
  uint16_t mask = 7;
  for (const AccessEntry& entry : *entries) {
    if (entry.tag == tag_mask) mask = entry.permissions;
  }
  for (const AccessEntry& entry : *entries) {
    if (!(entry.permissions & mask & permission_write)) continue;
    if (entry.tag == tag_user && entry.id != user && entry.id != 0) {
      return {fmt::format("can be written by the user {} through its access list", user_name(entry.id)),
              "setfacl -b %"};
    }
    if (entry.tag == tag_group && !is_own_group(entry.id, ownership.owner)) {
      return {fmt::format("can be written by the group {} through its access list", group_name(entry.id)),
              "setfacl -b %"};
    }
    if (entry.tag == tag_group_owner && !is_own_group(ownership.group, ownership.owner)) {
      return {fmt::format("can be written by the group {}", group_name(ownership.group)), "chmod g-w %"};
    }
  }
  return {};
}

Status not_trusted(const std::string& kind, const std::string& path, const Complaint& complaint) {
  std::string remedy = complaint.remedy;
  const size_t position = remedy.find('%');
  if (position != std::string::npos) remedy.replace(position, 1, quoted(path));
  return Status(Code::invalid_argument, fmt::format("the {} {} {}.", kind, quoted(path), complaint.sentence),
                remedy.empty() ? remedy : fmt::format("Run: {}", remedy));
}

std::string why(int error) { return std::strerror(error); }

// Reads an access list with `read(buffer, size)`, which works like fgetxattr. A list that cannot be read counts as not
// understood, so the file is not trusted.
template <class Read>
std::string read_access_list(Read read) {
  std::string raw(256, '\0');
  for (;;) {
    const ssize_t size = read(raw.data(), raw.size());
    if (size >= 0) {
      raw.resize(static_cast<size_t>(size));
      return raw;
    }
    if (errno == ENODATA || errno == EOPNOTSUPP) return {};
    if (errno != ERANGE || raw.size() > (1 << 20)) return "?";
    raw.resize(raw.size() * 4);
  }
}

constexpr const char* access_attribute = "system.posix_acl_access";

Status check_folder(const std::string& path, uid_t user) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) {
    return Status(Code::not_found, fmt::format("the folder {} cannot be examined: {}.", quoted(path), why(errno)));
  }
  if ((status.st_mode & S_ISVTX) && status.st_uid == 0) return {};
  const Ownership ownership{status.st_uid, status.st_gid, status.st_mode, read_access_list([&](char* raw, size_t size) {
                              return lgetxattr(path.c_str(), access_attribute, raw, size);
                            })};
  const Complaint complaint = find_stranger(ownership, user);
  return complaint.empty() ? Status() : not_trusted("folder", path, complaint);
}

Status unresolved(const std::string& path, int error) {
  return Status(error == ENOENT ? Code::not_found : Code::invalid_argument,
                fmt::format("the file {} cannot be resolved: {}.", quoted(path), why(error)),
                error == ENOENT ? "Remove it, or restore the file that it points to." : "");
}

Result<std::string> resolve(const std::string& path) {
  std::unique_ptr<char, decltype(&std::free)> resolved(realpath(path.c_str(), nullptr), &std::free);
  if (!resolved) return unresolved(path, errno);
  return std::string(resolved.get());
}

// Resolves a path as the system does, and checks each folder on the way before it reads the folder.
class Walk {
 public:
  Walk(std::string path, uid_t user) : path_(std::move(path)), user_(user) {}

  Result<std::string> resolve() {
    if (path_.empty() || path_.front() != '/') {
      TENON_ASSIGN_OR_RETURN(const std::string here, loader::resolve("."));
      push(fmt::format("{}/{}", here, path_));
    } else {
      push(path_);
    }
    TENON_RETURN_IF_ERROR(check_folder("/", user_));
    while (!rest_.empty()) TENON_RETURN_IF_ERROR(step());
    return here_.empty() ? "/" : here_;
  }

 private:
  static constexpr int kMostLinks = 40;

  // Puts the names of `path` before the names that are not yet resolved.
  void push(const std::string& path) {
    std::vector<std::string> names;
    size_t at = 0;
    while (at < path.size()) {
      const size_t slash = std::min(path.find('/', at), path.size());
      if (slash > at) names.push_back(path.substr(at, slash - at));
      at = slash + 1;
    }
    rest_.insert(rest_.begin(), names.begin(), names.end());
  }

  Status step() {
    const std::string name = std::move(rest_.front());
    rest_.pop_front();
    if (name == ".") return {};
    if (name == "..") {
      here_.resize(here_.empty() ? 0 : here_.rfind('/'));
      return {};
    }
    const std::string next = fmt::format("{}/{}", here_, name);
    struct stat status {};
    if (lstat(next.c_str(), &status) != 0) return unresolved(path_, errno);
    if (S_ISLNK(status.st_mode)) return follow(next, status.st_uid);
    if (S_ISDIR(status.st_mode)) {
      TENON_RETURN_IF_ERROR(check_folder(next, user_));
    } else if (!rest_.empty()) {
      return unresolved(path_, ENOTDIR);
    }
    here_ = next;
    return {};
  }

  // Checks the owner of the link, who decides its target. The folder that holds the link was already checked.
  Status follow(const std::string& link, uid_t owner) {
    if (owner != 0 && owner != user_) {
      return not_trusted("link", link,
                         {fmt::format("belongs to {}, neither to root nor to {}", user_name(owner), user_name(user_)),
                          "chown -h root %"});
    }
    char target[PATH_MAX];
    const ssize_t size = readlink(link.c_str(), target, sizeof target);
    if (size < 0) return unresolved(path_, errno);
    if (++links_ > kMostLinks) return unresolved(path_, ELOOP);
    const std::string text(target, static_cast<size_t>(size));
    if (text.starts_with('/')) here_.clear();
    push(text);
    return {};
  }

  std::string path_, here_;
  uid_t user_;
  std::deque<std::string> rest_;
  int links_ = 0;
};

// A privileged process trusts only root, since its user's files may come from the person who started it.
uid_t trusted_user() { return getauxval(AT_SECURE) != 0 ? 0 : geteuid(); }

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (value_ >= 0) close(value_);
    value_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (value_ >= 0) close(value_);
}

bool is_group_of_another(const char* accounts, gid_t group, uid_t owner) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(accounts, "re"), &std::fclose);
  if (!file) return false;
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* result = nullptr;
  while (fgetpwent_r(file.get(), &entry, buffer.data(), buffer.size(), &result) == 0 && result) {
    if (entry.pw_gid == group && entry.pw_uid != owner) return true;
  }
  return false;
}

Complaint find_stranger(const Ownership& ownership, uid_t user) {
  if (ownership.owner != 0 && ownership.owner != user) {
    return {fmt::format("belongs to {}, neither to root nor to {}", user_name(ownership.owner), user_name(user)),
            "chown root %"};
  }
  if (ownership.mode & S_IWOTH)
    return {fmt::format("can be written by anyone (mode {})", octal(ownership.mode)), "chmod o-w %"};
  if (!ownership.access_list.empty()) return stranger_in_list(ownership, user);
  if ((ownership.mode & S_IWGRP) && !is_own_group(ownership.group, ownership.owner)) {
    return {fmt::format("can be written by the group {} (mode {})", group_name(ownership.group), octal(ownership.mode)),
            "chmod g-w %"};
  }
  return {};
}

Result<FileIdentity> identify(int descriptor, const std::string& path) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) {
    return Status(Code::not_found, fmt::format("the file {} cannot be examined: {}.", quoted(path), why(errno)));
  }
  if (!S_ISREG(status.st_mode))
    return Status(Code::invalid_argument, fmt::format("{} is not a regular file.", quoted(path)));
  return FileIdentity{status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size), status.st_mtim.tv_sec,
                      status.st_mtim.tv_nsec};
}

Result<CheckedFile> open_checked(const std::string& path, bool check_owners) {
  const uid_t user = trusted_user();
  // Resolves first, so that a missing file is not reported as an untrusted folder above it.
  TENON_ASSIGN_OR_RETURN(std::string resolved, resolve(path));
  if (check_owners) {
    TENON_ASSIGN_OR_RETURN(resolved, Walk(path, user).resolve());
  }
  Descriptor descriptor(open(resolved.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (descriptor.get() < 0) {
    return Status(Code::not_found, fmt::format("the file {} cannot be opened: {}.", quoted(resolved), why(errno)));
  }
  TENON_ASSIGN_OR_RETURN(const FileIdentity identity, identify(descriptor.get(), resolved));
  if (check_owners) {
    struct stat status {};
    if (fstat(descriptor.get(), &status) != 0) return Status(Code::not_found, why(errno));
    const Ownership ownership{status.st_uid, status.st_gid, status.st_mode,
                              read_access_list([&](char* raw, size_t size) {
                                return fgetxattr(descriptor.get(), access_attribute, raw, size);
                              })};
    const Complaint complaint = find_stranger(ownership, user);
    if (!complaint.empty()) return not_trusted("file", resolved, complaint);
  }
  return CheckedFile{std::move(resolved), identity, std::move(descriptor)};
}

}  // namespace tenon::loader
