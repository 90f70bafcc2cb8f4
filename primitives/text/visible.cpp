#include "primitives/text/visible.h"

#include <cstdint>

#include "primitives/text/format.h"

namespace tenon {
namespace {

// The character at the start of `text` and its number of bytes. For invalid UTF-8: the first byte, and 0.
struct Character {
  uint32_t code;
  size_t bytes;
};

Character first_of(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {lead, 0};
  uint32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xc0) != 0x80) return {lead, 0};
    code = code << 6 | (next & 0x3f);
  }
  const bool shorter = code < (bytes == 4 ? 0x10000u : bytes == 3 ? 0x800u : 0x80u);
  const bool half = code >= 0xd800 && code < 0xe000;
  return shorter || half || code > 0x10ffff ? Character{lead, 0} : Character{code, bytes};
}

bool shows(uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool ends_line = code == 0x2028 || code == 0x2029;
  const bool turns = code == 0x061c || (code >= 0x200e && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
  return !control && !ends_line && !turns;
}

std::string escape_of(const Character& character) {
  switch (character.code) {
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '\r': return "\\r";
    default: break;
  }
  return character.code < 0x80 || character.bytes == 0 ? fmt::format("\\x{:02x}", character.code)
                                                       : fmt::format("\\u{:04x}", character.code);
}

std::string shown(std::string_view text, bool keeps_lines) {
  std::string result;
  while (!text.empty()) {
    const Character first = first_of(text);
    const size_t bytes = first.bytes == 0 ? 1 : first.bytes;
    const bool stays = first.bytes > 0 && (shows(first.code) || (keeps_lines && first.code == '\n'));
    result += stays ? std::string(text.substr(0, bytes)) : escape_of(first);
    text.remove_prefix(bytes);
  }
  return result;
}

}  // namespace

std::string visible(std::string_view text) { return shown(text, false); }
std::string visible_lines(std::string_view text) { return shown(text, true); }
std::string quoted(std::string_view text) { return fmt::format("'{}'", visible(text)); }

}  // namespace tenon
