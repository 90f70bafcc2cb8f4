// The plug-in's question to the helper tenon-compile-opencl, as text: options, entries, then an empty line and the
// source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::provider::opencl {

// An entry as the rewritten head takes it (head.h): buffers, parameters, the fault buffer, the words.
struct AskedEntry {
  std::string name;  // a C identifier
  uint32_t buffers = 0;
  uint32_t parameter_bytes = 0;  // 0: no parameters
  bool by_reference = false;
  bool faults = false;
  uint64_t words = 0;  // bytes of struct ep_launch_words
  uint64_t group[3] = {1, 1, 1};
};

struct Asked {
  std::string options;  // a single line
  std::vector<AskedEntry> entries;
  std::string source;
};

std::string text_of(const Asked& asked);
// False if text_of did not write `text`.
bool read(const std::string& text, Asked* asked);

}  // namespace tenon::provider::opencl
