// Library: a shared library of a vendor, loaded at run time. The system's loader looks for each of several names,
// newest version first. A loaded library is never unloaded, because its threads and handlers may outlive the provider.
#pragma once

#include <span>
#include <string>

namespace tenon::provider::cuda {

class Library {
 public:
  // Loads the first of `names` that can be loaded. If none can, loaded() is false and failure() gives the reason for
  // each.
  static Library open(std::span<const char* const> names);

  bool loaded() const { return handle_ != nullptr; }
  const std::string& name() const { return name_; }
  // "libcublasLt.so.13: cannot open shared object file: No such file or directory; libcublasLt.so.12: ..."
  const std::string& failure() const { return failure_; }
  // True if a file with one of these names exists but cannot be loaded.
  bool found_broken() const { return found_broken_; }
  // NULL if the library has no such symbol.
  void* symbol(const char* name) const;

 private:
  void* handle_ = nullptr;
  std::string name_;
  std::string failure_;
  bool found_broken_ = false;
};

}  // namespace tenon::provider::cuda
