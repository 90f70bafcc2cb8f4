#include "loader/trust/trust.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace tenon::loader {
namespace {

std::string quoted(const std::string& text) { return "'" + text + "'"; }

std::string octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

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
  const std::string number = "user id " + std::to_string(id);
  return account.found ? quoted(account.name) + " (" + number + ")" : number;
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
  const std::string number = "group id " + std::to_string(id);
  return found.name.empty() ? number : quoted(found.name) + " (" + number + ")";
}

// A group that holds nobody but `owner`: his primary group, named after him, without other members.
bool is_own_group(gid_t id, uid_t owner) {
  const Account account = account_of(owner);
  if (!account.found || account.group != id) return false;
  const Group found = group_of(id);
  if (found.name != account.name) return false;
  for (const std::string& member : found.members) {
    if (member != account.name) return false;
  }
  return true;
}

// The layout of system.posix_acl_access: a version word, then entries. See acl(5) and linux/posix_acl_xattr.h.
struct AccessEntry {
  uint16_t tag, permissions;
  uint32_t id;
};
constexpr uint32_t access_version = 2;
constexpr uint16_t tag_user = 0x02, tag_group_owner = 0x04, tag_group = 0x08, tag_mask = 0x10;
constexpr uint16_t permission_write = 2;

std::vector<AccessEntry> access_entries(const std::string& raw) {
  uint32_t version = 0;
  if (raw.size() < sizeof version) return {};
  std::memcpy(&version, raw.data(), sizeof version);
  if (version != access_version) return {};
  std::vector<AccessEntry> entries((raw.size() - sizeof version) / sizeof(AccessEntry));
  if (!entries.empty()) std::memcpy(entries.data(), raw.data() + sizeof version, entries.size() * sizeof(AccessEntry));
  return entries;
}

Complaint stranger_in_list(const Ownership& ownership, uid_t user) {
  const std::vector<AccessEntry> entries = access_entries(ownership.access_list);
  uint16_t mask = 7;
  for (const AccessEntry& entry : entries) {
    if (entry.tag == tag_mask) mask = entry.permissions;
  }
  for (const AccessEntry& entry : entries) {
    if (!(entry.permissions & mask & permission_write)) continue;
    if (entry.tag == tag_user && entry.id != user && entry.id != 0) {
      return {"can be written by the user " + user_name(entry.id) + " through its access list", "setfacl -b %"};
    }
    if (entry.tag == tag_group && !is_own_group(entry.id, ownership.owner)) {
      return {"can be written by the group " + group_name(entry.id) + " through its access list", "setfacl -b %"};
    }
    if (entry.tag == tag_group_owner && !is_own_group(ownership.group, ownership.owner)) {
      return {"can be written by the group " + group_name(ownership.group), "chmod g-w %"};
    }
  }
  return {};
}

Status not_trusted(const std::string& kind, const std::string& path, const Complaint& complaint) {
  std::string remedy = complaint.remedy;
  const size_t place = remedy.find('%');
  if (place != std::string::npos) remedy.replace(place, 1, quoted(path));
  return Status(Code::invalid_argument, "the " + kind + " " + quoted(path) + " " + complaint.sentence + ".",
                remedy.empty() ? remedy : "Run: " + remedy);
}

std::string read_access_list(int descriptor) {
  char raw[4096];
  const ssize_t size = fgetxattr(descriptor, "system.posix_acl_access", raw, sizeof raw);
  return size > 0 ? std::string(raw, static_cast<size_t>(size)) : std::string();
}

std::string why(int error) { return std::strerror(error); }

Status check_folder(const std::string& path, uid_t user) {
  const Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  const bool opened = folder.get() >= 0;
  if ((opened ? fstat(folder.get(), &status) : stat(path.c_str(), &status)) != 0) {
    return Status(Code::not_found, "the folder " + quoted(path) + " cannot be examined: " + why(errno) + ".");
  }
  if ((status.st_mode & S_ISVTX) && status.st_uid == 0) return {};
  const Ownership ownership{status.st_uid, status.st_gid, status.st_mode,
                            opened ? read_access_list(folder.get()) : std::string()};
  const Complaint complaint = find_stranger(ownership, user);
  return complaint.empty() ? Status() : not_trusted("folder", path, complaint);
}

Status check_ancestors(const std::string& path, uid_t user) {
  size_t slash = 0;
  while (slash != std::string::npos) {
    TENON_RETURN_IF_ERROR(check_folder(slash == 0 ? "/" : path.substr(0, slash), user));
    slash = path.find('/', slash + 1);
  }
  return {};
}

Result<std::string> resolve(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (!resolved) {
    const int error = errno;
    return Status(error == ENOENT ? Code::not_found : Code::invalid_argument,
                  "the file " + quoted(path) + " cannot be resolved: " + why(error) + ".",
                  error == ENOENT ? "Remove it, or put back what it points to." : "");
  }
  std::string text = resolved;
  std::free(resolved);
  return text;
}

// The folder that holds the entry `path`, which may be a link to elsewhere.
Status check_entry_folder(const std::string& path, uid_t user) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const Result<std::string> resolved = resolve(folder);
  return resolved.ok() ? check_ancestors(resolved.value() + "/", user) : resolved.status();
}

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

Complaint find_stranger(const Ownership& ownership, uid_t user) {
  if (ownership.owner != 0 && ownership.owner != user) {
    return {"belongs to " + user_name(ownership.owner) + ", neither to root nor to " + user_name(user), "chown root %"};
  }
  if (ownership.mode & S_IWOTH) return {"can be written by anyone (mode " + octal(ownership.mode) + ")", "chmod o-w %"};
  if (!ownership.access_list.empty()) return stranger_in_list(ownership, user);
  if ((ownership.mode & S_IWGRP) && !is_own_group(ownership.group, ownership.owner)) {
    return {"can be written by the group " + group_name(ownership.group) + " (mode " + octal(ownership.mode) + ")",
            "chmod g-w %"};
  }
  return {};
}

Result<FileIdentity> identify(int descriptor, const std::string& path) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) {
    return Status(Code::not_found, "the file " + quoted(path) + " cannot be examined: " + why(errno) + ".");
  }
  if (!S_ISREG(status.st_mode)) return Status(Code::invalid_argument, quoted(path) + " is not a regular file.");
  return FileIdentity{status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size), status.st_mtim.tv_sec,
                      status.st_mtim.tv_nsec};
}

Result<CheckedFile> open_checked(const std::string& path, bool check_owners) {
  const uid_t user = geteuid();
  TENON_ASSIGN_OR_RETURN(std::string resolved, resolve(path));
  if (check_owners) {
    TENON_RETURN_IF_ERROR(check_entry_folder(path, user));
    TENON_RETURN_IF_ERROR(check_ancestors(resolved, user));
  }
  Descriptor descriptor(open(resolved.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (descriptor.get() < 0) {
    return Status(Code::not_found, "the file " + quoted(resolved) + " cannot be opened: " + why(errno) + ".");
  }
  TENON_ASSIGN_OR_RETURN(const FileIdentity identity, identify(descriptor.get(), resolved));
  if (check_owners) {
    struct stat status {};
    if (fstat(descriptor.get(), &status) != 0) return Status(Code::not_found, why(errno));
    const Ownership ownership{status.st_uid, status.st_gid, status.st_mode, read_access_list(descriptor.get())};
    const Complaint complaint = find_stranger(ownership, user);
    if (!complaint.empty()) return not_trusted("file", resolved, complaint);
  }
  return CheckedFile{std::move(resolved), identity, std::move(descriptor)};
}

}  // namespace tenon::loader
