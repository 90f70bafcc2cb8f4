// Library: a shared object that lies in memory, loaded. It has no path, so nobody else can change or keep it.
#pragma once

#include <memory>
#include <string>

namespace tenon::provider::cpu {

class Library {
 public:
  // Loads `bytes`. NULL: they are no shared object for this processor, or it cannot be loaded; `*why_not` says why.
  static std::unique_ptr<Library> load(const std::string& bytes, std::string* why_not);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // The address of the function `name` that the library defines itself, or NULL.
  void* function(const std::string& name) const;

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace tenon::provider::cpu
