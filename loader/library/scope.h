// Scope: where a plug-in and the libraries that it links look for a symbol.
//
// With RTLD_DEEPBIND they look at each other first, then at the program. Without it they bind to the program's symbols
// of the same name, and a process may hold another copy of oneDNN. But then they also take malloc and free from the C
// library, whatever allocator the process has, while functions inside the C library (strdup) keep that allocator. So
// where a library brings the allocator, a stub stands in front: a library without content that links the allocator's
// library first and the plug-in second. Both are then looked at in that order.
#pragma once

#include <string>
#include <vector>

#include "loader/trust/trust.h"

namespace tenon::loader {

// What to give to dlopen for a plug-in.
struct Scope {
  std::string path;  // the plug-in, or its stub
  int mode = 0;      // RTLD_*
  Descriptor stub;   // of the stub; its number is its name, so it stays open as long as the stub is mapped
};

Scope scope_of(const std::string& plugin_path);

// The mode for who maps a plug-in without a stub. RTLD_DEEPBIND is left out where the C library's malloc is not the
// process's: a sanitizer or an allocator stands in front of the C library.
int plain_mapping_mode();

// The bytes of a shared library for this machine that needs `libraries` and has nothing else.
std::string stub_library(const std::vector<std::string>& libraries);

}  // namespace tenon::loader
