// Libraries that a plug-in brings along but does not use: the dynamic linker loads one library of each name per
// process.
#pragma once

#include <string>
#include <vector>

namespace tenon::loader {

// A library in the plug-in's folder, and the library of the same name that was loaded instead.
struct Displaced {
  std::string own, taken;
};

// For the mapped library that contains `address`: the libraries that it needs and that exist in a folder of its
// RUNPATH, but for which another file of the same name was loaded.
std::vector<Displaced> displaced_libraries(const void* address);

}  // namespace tenon::loader
