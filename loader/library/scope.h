// Scope: where a plug-in and the libraries that it links look up symbols.
//
// With RTLD_DEEPBIND they search each other first, then the program. Without it they bind to the program's symbols of
// the same name, and a process may contain a second copy of oneDNN. But RTLD_DEEPBIND also takes malloc and free from
// the C library even if the process has another allocator, while functions inside the C library (strdup) use that
// allocator. So if a library provides the allocator, a stub is loaded in front of the plug-in: an empty library that
// links the allocator's library first and the plug-in second. The linker then searches them in that order.
#pragma once

#include <string>
#include <vector>

#include "loader/trust/trust.h"

namespace tenon::loader {

// The arguments of dlopen for a plug-in.
struct Scope {
  std::string path;  // the plug-in, or its stub
  int mode = 0;      // RTLD_*
  Descriptor stub;  // the stub's file; its number is part of the stub's path, so it stays open while the stub is mapped
};

Scope scope_of(const std::string& plugin_path);

// The mode for mapping a plug-in without a stub. Leaves out RTLD_DEEPBIND if the process does not use the C library's
// malloc, as with a sanitizer or another allocator.
int plain_mapping_mode();

// The bytes of a shared library for this machine that needs `libraries` and contains nothing else.
std::string stub_library(const std::vector<std::string>& libraries);

}  // namespace tenon::loader
