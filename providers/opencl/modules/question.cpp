#include "providers/opencl/modules/question.h"

#include <fmt/core.h>

#include <sstream>

namespace tenon::provider::opencl {

std::string text_of(const Asked& asked) {
  std::string text = asked.options + "\n";
  for (const AskedEntry& entry : asked.entries) {
    text += fmt::format("{} {} {} {} {} {} {} {} {}\n", entry.name, entry.buffers, entry.parameter_bytes,
                        entry.by_reference ? 1 : 0, entry.faults ? 1 : 0, entry.words, entry.group[0], entry.group[1],
                        entry.group[2]);
  }
  return text + "\n" + asked.source;
}

bool read(const std::string& text, Asked* asked) {
  size_t at = text.find('\n');
  if (at == std::string::npos) return false;
  asked->options = text.substr(0, at);
  while (true) {
    const size_t end = text.find('\n', ++at);
    if (end == std::string::npos) return false;
    const std::string line = text.substr(at, end - at);
    at = end;
    if (line.empty()) break;
    AskedEntry& entry = asked->entries.emplace_back();
    std::istringstream words(line);
    words >> entry.name >> entry.buffers >> entry.parameter_bytes >> entry.by_reference >> entry.faults >>
        entry.words >> entry.group[0] >> entry.group[1] >> entry.group[2];
    if (!words) return false;
  }
  asked->source = text.substr(at + 1);
  return true;
}

}  // namespace tenon::provider::opencl
