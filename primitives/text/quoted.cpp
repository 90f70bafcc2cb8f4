#include "primitives/text/quoted.h"

namespace tenon {

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return result + "\"";
}

size_t read_quoted(std::string_view text, std::string* out) {
  if (!text.starts_with('"')) return 0;
  out->clear();
  for (size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '"') return at + 1;
    const bool escaped = text[at] == '\\' && at + 1 < text.size();
    const char c = text[at += escaped ? 1 : 0];
    *out += escaped && c == 'n' ? '\n' : c;
  }
  return 0;
}

}  // namespace tenon
