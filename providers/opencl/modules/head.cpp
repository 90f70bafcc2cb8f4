#include "providers/opencl/modules/head.h"

#include <fmt/core.h>

#include <cctype>
#include <string_view>
#include <vector>

#include "sdk/provider/error.h"

namespace tenon::provider::opencl {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Returns `text` with comments and quoted text replaced by blanks, so that positions stay the same.
std::string without_comments(std::string text) {
  const auto blank = [&text](size_t from, size_t to) {
    for (size_t i = from; i < to && i < text.size(); ++i) {
      if (text[i] != '\n') text[i] = ' ';
    }
  };
  size_t at = 0;
  while (at < text.size()) {
    size_t end = at + 1;
    if (text.compare(at, 2, "//") == 0) {
      end = std::min(text.find('\n', at), text.size());
      blank(at, end);
    } else if (text.compare(at, 2, "/*") == 0) {
      const size_t closing = text.find("*/", at + 2);
      end = closing == std::string::npos ? text.size() : closing + 2;
      blank(at, end);
    } else if (text[at] == '"' || text[at] == '\'') {
      while (end < text.size() && text[end] != text[at] && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      blank(at + 1, end);
      ++end;
    }
    at = end;
  }
  return text;
}

size_t skip_space(const std::string& text, size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

// A range of the text.
struct Piece {
  size_t begin, end;
};

struct Head {
  std::vector<Piece> parameters;  // without surrounding blanks
  size_t close = 0;               // position of the `)`
  size_t body = 0;                // position after the `{`
};

Piece trimmed(const std::string& text, Piece piece) {
  piece.begin = skip_space(text, piece.begin);
  while (piece.end > piece.begin && is_space(text[piece.end - 1])) --piece.end;
  return piece;
}

// Reads the head whose `(` is at `open`. False if it is not a definition.
bool read_head(const std::string& text, size_t open, Head* head) {
  int depth = 0;
  size_t begin = open + 1;
  head->parameters.clear();
  for (size_t at = open; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')') --depth;
    if ((text[at] != ',' || depth != 1) && depth != 0) continue;
    const Piece piece = trimmed(text, {begin, at});
    if (piece.begin < piece.end) head->parameters.push_back(piece);
    begin = at + 1;
    if (depth != 0) continue;
    head->close = at;
    head->body = skip_space(text, at + 1) + 1;
    return head->body <= text.size() && text[head->body - 1] == '{';
  }
  return false;
}

bool find_head(const std::string& text, std::string_view name, Head* head) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at > 0 && is_word(text[at - 1])) || (end < text.size() && is_word(text[end]))) continue;
    const size_t open = skip_space(text, end);
    if (open < text.size() && text[open] == '(' && read_head(text, open, head)) return true;
  }
  return false;
}

// The name at the end of a parameter; empty if there is none.
std::string name_of(const std::string& text, Piece piece) {
  size_t begin = piece.end;
  while (begin > piece.begin && is_word(text[begin - 1])) --begin;
  const bool named =
      begin > piece.begin && begin < piece.end && std::isdigit(static_cast<unsigned char>(text[begin])) == 0;
  return named ? text.substr(begin, piece.end - begin) : std::string();
}

}  // namespace

uint32_t buffers_of(const ep_module_entry& entry) {
  return entry.buffer_count + ((entry.flags & EP_ENTRY_FLAG_WORKSPACE) != 0 ? 1 : 0) +
         ((entry.flags & EP_ENTRY_FLAG_SCRATCH) != 0 ? 1 : 0);
}

std::string rewrite_head(const ep_module_entry& entry, bool by_reference, std::string* text) {
  const std::string_view name = to_view(entry.name);
  const std::string plain = without_comments(*text);
  Head head;
  if (!find_head(plain, name, &head)) return fmt::format("does not define the entry {}", name);
  const uint32_t buffers = buffers_of(entry);
  const bool faults = (entry.flags & EP_ENTRY_FLAG_FAULTS) != 0;
  const size_t wanted = buffers + (entry.parameter_bytes != 0 ? 1 : 0) + (faults ? 1 : 0);
  if (head.parameters.size() != wanted) {
    return fmt::format("gives the entry {} {} parameters; its description has {}", name, head.parameters.size(),
                       wanted);
  }
  std::string begins;
  for (uint32_t i = 0; i < buffers; ++i) {
    const std::string buffer = name_of(plain, head.parameters[i]);
    if (buffer.empty()) return fmt::format("does not end parameter {} of the entry {} with its name", i, name);
    begins += fmt::format(" {0} = (__global void*)((__global uchar*){0} + ep_words.offsets[{1}]);", buffer, i);
  }
  if (faults) begins += " ep_faults += ep_words.slot;";
  std::string reference;
  Piece value{};
  if (entry.parameter_bytes != 0 && by_reference) {
    value = head.parameters[buffers];
    const std::string parameter = name_of(plain, value);
    if (parameter.empty()) return fmt::format("does not end parameter {} of the entry {} with its name", buffers, name);
    const std::string type = text->substr(value.begin, value.end - value.begin - parameter.size());
    reference = fmt::format("__global {}* ep_parameters", type);
    begins += fmt::format(" {}{} = *ep_parameters;", type, parameter);
  }
  // From the end, so that earlier positions stay valid.
  text->insert(head.body, begins);
  text->insert(head.close, fmt::format("{}struct ep_launch_words ep_words", wanted != 0 ? ", " : ""));
  if (!reference.empty()) text->replace(value.begin, value.end - value.begin, reference);
  return {};
}

}  // namespace tenon::provider::opencl
