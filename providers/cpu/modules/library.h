// Library: a loaded shared object that exists only in memory. It has no path, so no other program can replace or keep
// it.
#pragma once

#include <memory>
#include <string>

namespace tenon::provider::cpu {

class Library {
 public:
  // Loads `bytes`. Returns NULL, with the reason in `*why_not`, if they are not a shared object for this processor or
  // cannot be loaded.
  static std::unique_ptr<Library> load(const std::string& bytes, std::string* why_not);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // The address of the function `name`, or NULL if the library itself does not define it.
  void* function(const std::string& name) const;

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace tenon::provider::cpu
