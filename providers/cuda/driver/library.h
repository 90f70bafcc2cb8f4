// Library: a vendor's shared library, reached at run time. It is looked for under each of several names, the newest
// first, where the system's loader looks; nothing of it is linked. Once loaded it stays: its threads and handlers may
// outlive us.
#pragma once

#include <span>
#include <string>

namespace tenon::provider::cuda {

class Library {
 public:
  // The first of `names` that can be loaded. If none can, loaded() is false and failure() says of each why.
  static Library open(std::span<const char* const> names);

  bool loaded() const { return handle_ != nullptr; }
  const std::string& name() const { return name_; }
  // "libcublasLt.so.13: cannot open shared object file: No such file or directory; libcublasLt.so.12: ..."
  const std::string& failure() const { return failure_; }
  // True if some file of these names is there, though it cannot be used.
  bool found_broken() const { return found_broken_; }
  // NULL if it has no such symbol.
  void* symbol(const char* name) const;

 private:
  void* handle_ = nullptr;
  std::string name_;
  std::string failure_;
  bool found_broken_ = false;
};

}  // namespace tenon::provider::cuda
