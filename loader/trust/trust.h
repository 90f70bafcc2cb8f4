// Trust: decides if a file may be loaded or believed. The owners and permissions of the path decide.
//
// The file, its folder and every folder above must belong to root or to the user, and nobody else may be able to write
// them: not others, not a group other than the owner's own, not through an access list. The same holds for each
// symbolic link on the way and for the folders that contain it. Root's folders with the sticky bit (/tmp) are allowed,
// since nobody can replace another user's entries in them. A privileged process trusts only root.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "primitives/status/status.h"

namespace tenon::loader {

// A descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return value_; }
  int release() {
    const int value = value_;
    value_ = -1;
    return value;
  }

 private:
  int value_ = -1;
};

// Identifies the contents of a file: equal as long as nobody replaced or rewrote the file.
struct FileIdentity {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t seconds = 0, nanoseconds = 0;  // the time of the last modification

  bool same_file(const FileIdentity& other) const { return device == other.device && inode == other.inode; }
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// A file opened for reading, with its identity at the check. Keeps the descriptor open.
struct CheckedFile {
  std::string path;  // resolved: absolute, without links
  FileIdentity identity;
  Descriptor descriptor;
};

// Opens the regular file `path`. With `check_owners`, the file and every folder and link on the way to it are checked
// as above. Errors: the file is not there, is not a regular file, or cannot be trusted (names the file or folder, and a
// remedy).
Result<CheckedFile> open_checked(const std::string& path, bool check_owners = true);

Result<FileIdentity> identify(int descriptor, const std::string& path);

// The owner, group, mode and POSIX access list (the raw value of system.posix_acl_access, empty for none) of a file or
// folder. They decide who can write it. Tests give their own values. The complaint is empty if only root and `user` can
// write it.
struct Ownership {
  uid_t owner = 0;
  gid_t group = 0;
  mode_t mode = 0;
  std::string access_list;
};
struct Complaint {
  std::string sentence;  // follows the name of the thing: "can be written by anyone (mode 0777)"
  std::string remedy;    // a command, with "%" for the name
  bool empty() const { return sentence.empty(); }
};
Complaint find_stranger(const Ownership& ownership, uid_t user);

// True if `group` is the primary group of an account other than `owner` in `accounts`, a file like /etc/passwd.
bool is_group_of_another(const char* accounts, gid_t group, uid_t owner);

}  // namespace tenon::loader
