// Libraries that a plug-in brings along and does not get: the dynamic linker has one library of each name in a process.
#pragma once

#include <string>
#include <vector>

namespace tenon::loader {

// A library beside a plug-in, and the one of its name that the plug-in is linked with instead.
struct Displaced {
  std::string own, taken;
};

// Of the mapped library that `address` lies in: the libraries that it needs, which are in a folder of its RUNPATH, and
// which another file of the same name stands for.
std::vector<Displaced> displaced_libraries(const void* address);

}  // namespace tenon::loader
