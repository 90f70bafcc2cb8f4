#include "loader/probe/record.h"

#include <charconv>

#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

constexpr std::string_view head = "tenon-probe 1\n";
constexpr std::string_view tail = "end\n";

// Removes the text before `mark`, and the mark, from the front of `bytes`, and returns the text. Nothing if there is no
// mark.
std::optional<std::string_view> take_before(std::string_view& bytes, char mark) {
  const size_t position = bytes.find(mark);
  if (position == std::string_view::npos) return std::nullopt;
  const std::string_view text = bytes.substr(0, position);
  bytes.remove_prefix(position + 1);
  return text;
}

}  // namespace

std::string Record::get(std::string_view key) const {
  for (const auto& [name, value] : fields_) {
    if (name == key) return value;
  }
  return {};
}

std::vector<std::string> Record::all(std::string_view key) const {
  std::vector<std::string> values;
  for (const auto& [name, value] : fields_) {
    if (name == key) values.push_back(value);
  }
  return values;
}

std::string Record::encode() const {
  std::string bytes(head);
  for (const auto& [key, value] : fields_) bytes += fmt::format("{} {}\n{}\n", key, value.size(), value);
  return bytes.append(tail);
}

std::optional<Record> Record::decode(std::string_view bytes) {
  if (!bytes.starts_with(head)) return std::nullopt;
  bytes.remove_prefix(head.size());
  Record record;
  while (bytes != tail) {
    const auto key = take_before(bytes, ' ');
    const auto length = take_before(bytes, '\n');
    if (!key || !length) return std::nullopt;
    size_t size = 0;
    const auto [end, error] = std::from_chars(length->data(), length->data() + length->size(), size);
    if (error != std::errc() || end != length->data() + length->size()) return std::nullopt;
    if (size >= bytes.size() || bytes[size] != '\n') return std::nullopt;
    record.add(std::string(*key), std::string(bytes.substr(0, size)));
    bytes.remove_prefix(size + 1);
  }
  return record;
}

}  // namespace tenon::loader
