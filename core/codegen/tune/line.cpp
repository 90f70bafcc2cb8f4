#include "core/codegen/tune/line.h"

#include <charconv>
#include <cmath>
#include <functional>

#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

// Parses JSON. Each function returns true and advances if the text continues with its item.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool ended() {
    pass_spaces();
    return rest_.empty();
  }
  bool mark(char c) {
    pass_spaces();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool number(double* value) {
    pass_spaces();
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), *value);
    if (error != std::errc() || !std::isfinite(*value)) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }
  bool string(std::string* text) {
    text->clear();
    if (!mark('"')) return false;
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\')
        *text += c;
      else if (!escape(text))
        return false;
    }
    return false;
  }
  // Parses {"name": ..., ...}; member(name) parses the value after the colon.
  bool object(const std::function<bool(const std::string&)>& member) {
    if (!mark('{')) return false;
    if (mark('}')) return true;
    do {
      std::string name;
      if (!string(&name) || !mark(':') || !member(name)) return false;
    } while (mark(','));
    return mark('}');
  }

 private:
  void pass_spaces() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  bool escape(std::string* text) {
    if (rest_.empty()) return false;
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == 'n') {
      *text += '\n';
    } else if (c == '"' || c == '\\') {
      *text += c;
    } else if (c == 'u') {
      unsigned code = 0;
      if (rest_.size() < 4) return false;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + 4, code, 16);
      if (error != std::errc() || end != rest_.data() + 4 || code > 0x7f) return false;
      rest_.remove_prefix(4);
      *text += static_cast<char>(code);
    } else {
      return false;
    }
    return true;
  }

  std::string_view rest_;
};

bool read_tile(const std::string& name, Reader* reader, Tiles* tiles) {
  double number = 0;
  if (!reader->number(&number)) return false;
  for (const TileRow& row : tile_rows()) {
    if (row.name != name) continue;
    if (!(number >= static_cast<double>(row.least) && number <= static_cast<double>(row.most))) return false;
    tiles->*row.member = static_cast<int64_t>(number);
    return static_cast<double>(tiles->*row.member) == number;
  }
  return false;
}

}  // namespace

std::string quoted_json(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string line_of(const TunedLine& tuned) {
  std::string tiles;
  for (const TileRow& row : tile_rows()) {
    if (tuned.tiles.*row.member == Tiles{}.*row.member) continue;
    tiles += fmt::format("{}\"{}\": {}", tiles.empty() ? "" : ", ", row.name, tuned.tiles.*row.member);
  }
  return fmt::format(R"({{"space": {}, "tiles": {{{}}}, "sizes": {}, "default_us": {:.3f}, "best_us": {:.3f}}})",
                     quoted_json(tuned.space), tiles, quoted_json(tuned.sizes), tuned.default_us, tuned.best_us);
}

std::optional<TunedLine> parse_line(std::string_view line) {
  TunedLine tuned;
  Reader reader(line);
  bool has_space = false, has_tiles = false;
  const bool whole = reader.object([&](const std::string& name) {
    if (name == "space") return has_space = reader.string(&tuned.space);
    if (name == "sizes") return reader.string(&tuned.sizes);
    if (name == "default_us") return reader.number(&tuned.default_us);
    if (name == "best_us") return reader.number(&tuned.best_us);
    if (name != "tiles") return false;
    return has_tiles = reader.object([&](const std::string& tile) { return read_tile(tile, &reader, &tuned.tiles); });
  });
  if (!whole || !reader.ended() || !has_space || !has_tiles) return std::nullopt;
  return tuned;
}

}  // namespace tenon::codegen
