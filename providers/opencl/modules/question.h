// What the plug-in asks the helper tenon-compile-opencl, as text: options, entries, and behind an empty line the
// source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::provider::opencl {

// An entry as the rewritten head takes it (head.h): buffers, parameters, the buffer of faults, the words.
struct AskedEntry {
  std::string name;  // a C identifier
  uint32_t buffers = 0;
  uint32_t parameter_bytes = 0;  // 0: there are none
  bool by_reference = false;
  bool faults = false;
  uint64_t words = 0;  // bytes
  uint64_t group[3] = {1, 1, 1};
};

struct Asked {
  std::string options;  // one line
  std::vector<AskedEntry> entries;
  std::string source;
};

std::string text_of(const Asked& asked);
// False: `text` is none that text_of wrote.
bool read(const std::string& text, Asked* asked);

}  // namespace tenon::provider::opencl
