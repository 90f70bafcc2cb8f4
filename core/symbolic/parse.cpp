// Parses sizes, conditions and arenas that text.cpp wrote. The text may come from a file, so nothing in it is trusted.
//
//   condition  sum ("==" | "!=" | "<" | "<=" | "broadcasts") sum
//   sum        ["-"] product (("+" | "-") product)*
//   product    power (("*" | "//" | "%") power)*
//   power      atom ["^" number]
//   atom       number | symbol | "(" sum ")" | ("min" | "max" | "broadcast" | "ceil_div") "(" sum "," sum ")"
#include <charconv>

#include "core/symbolic/arena.h"
#include "primitives/text/format.h"
#include "primitives/text/quoted.h"

namespace tenon::symbolic {
namespace {

constexpr int kMostDepth = 64;
constexpr size_t kMostText = size_t{1} << 20;

// Thrown at a syntax error; ends the parsing.
struct Wrong {
  std::string what;
};

class Reader {
 public:
  Reader(Arena& arena, std::string_view text) : arena_(arena), text_(text) {}

  SymDim sum() {
    if (++depth_ > kMostDepth) wrong("brackets are nested too deeply");
    const bool negative = take("-");
    SymDim total = product();
    if (negative) total = arena_.add(0, total, -1);
    while (true) {
      if (take("+")) {
        total = arena_.add(total, product());
      } else if (take("-")) {
        total = arena_.add(total, product(), -1);
      } else {
        --depth_;
        return total;
      }
    }
  }

  Condition condition() {
    const SymDim a = sum();
    const Relation relation = this->relation();
    return {relation, a, sum()};
  }

  std::string quoted() {
    skip();
    std::string result;
    const size_t read = read_quoted(text_.substr(at_), &result);
    if (read == 0) wrong("a text in quotes is expected");
    at_ += read;
    return result;
  }

  // A signed number, or nothing.
  std::optional<int64_t> number() {
    skip();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc::invalid_argument) return std::nullopt;
    if (error != std::errc()) wrong("the number is too large");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    const bool word = is_letter(token.back());
    if (word && at_ + token.size() < text_.size() && is_letter(text_[at_ + token.size()])) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) wrong(fmt::format("'{}' is expected", token));
  }
  void end() {
    skip();
    if (at_ != text_.size()) wrong("nothing more is expected");
  }
  [[noreturn]] void wrong(std::string_view what) const { throw Wrong{fmt::format("at position {} {}", at_, what)}; }

 private:
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  Relation relation() {
    if (take("==")) return Relation::eq;
    if (take("!=")) return Relation::ne;
    if (take("<=")) return Relation::le;
    if (take("<")) return Relation::lt;
    if (take("broadcasts")) return Relation::broadcastable;
    wrong("a comparison is expected");
  }

  SymDim product() {
    SymDim result = power();
    while (true) {
      if (take("*")) {
        result = arena_.multiply(result, power());
      } else if (take("//")) {
        result = arena_.floor_div(result, power());
      } else if (take("%")) {
        result = arena_.modulo(result, power());
      } else {
        return result;
      }
    }
  }

  SymDim power() {
    const SymDim base = atom();
    if (!take("^")) return base;
    const auto exponent = number();
    if (!exponent || *exponent < 1 || *exponent > kMostDegree) wrong("a power from 1 to 64 is expected");
    SymDim result = base;
    for (int64_t i = 1; i < *exponent; ++i) result = arena_.multiply(result, base);
    return result;
  }

  SymDim atom() {
    if (take("(")) {
      const SymDim inner = sum();
      expect(")");
      return inner;
    }
    if (take("S")) {
      const auto symbol = number();
      if (!symbol || *symbol < 0 || *symbol >= static_cast<int64_t>(arena_.symbols().size())) {
        wrong(fmt::format("a symbol from S0 to S{} is expected", static_cast<int64_t>(arena_.symbols().size()) - 1));
      }
      return arena_.resolve(arena_.symbol_at(static_cast<uint32_t>(*symbol)));
    }
    if (take("min")) return function([&](SymDim a, SymDim b) { return arena_.min(a, b); });
    if (take("max")) return function([&](SymDim a, SymDim b) { return arena_.max(a, b); });
    if (take("broadcast")) return function([&](SymDim a, SymDim b) { return arena_.broadcast(a, b); });
    if (take("ceil_div")) return function([&](SymDim a, SymDim b) { return ceil_div(a, b); });
    const auto value = number();
    if (!value) wrong("a size is expected");
    return *value;
  }

  SymDim function(const std::function<SymDim(SymDim, SymDim)>& make) {
    expect("(");
    const SymDim a = sum();
    expect(",");
    const SymDim b = sum();
    expect(")");
    return make(a, b);
  }

  Arena& arena_;
  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

// Applies `read` to the whole text.
template <class T, class Read>
Result<T> whole(Arena& arena, std::string_view text, const Read& read) {
  const ArenaScope scope(arena);
  try {
    if (text.size() > kMostText) throw Wrong{fmt::format("it has {} characters, more than {}", text.size(), kMostText)};
    Reader reader(arena, text);
    T result = read(reader);
    reader.end();
    return result;
  } catch (const Wrong& wrong) {
    return Status(Code::invalid_argument,
                  fmt::format("The text of a size '{}' cannot be read: {}.", text.substr(0, 80), wrong.what));
  } catch (const Error& error) {
    return Status(Code::invalid_argument,
                  fmt::format("The text of a size '{}' cannot be read: {}", text.substr(0, 80), error.what()));
  }
}

// Parses the rest of a symbol's line after the word "symbol".
Symbol read_symbol(Reader& reader, size_t number) {
  reader.expect(fmt::format("S{}", number));
  Symbol symbol;
  symbol.source = reader.quoted();
  reader.expect("in");
  reader.expect("[");
  symbol.range.lo = reader.number().value_or(Range::kNone);
  reader.expect(",");
  symbol.range.hi = reader.number().value_or(SymDim::kMost);
  reader.expect("]");
  if (reader.take("multiple")) symbol.divisor = reader.number().value_or(0);
  if (reader.take("hint")) symbol.hint = reader.number();
  if (symbol.divisor < 1) reader.wrong("a multiple of at least 1 is expected");
  return symbol;
}

void read_line(Reader& reader, Arena* arena) {
  if (reader.take("symbol")) {
    (void)arena->symbol(read_symbol(reader, arena->symbols().size()));
    return;
  }
  const bool guard = reader.take("guard");
  const bool check = !guard && reader.take("check");
  if (!guard && !check && !reader.take("assumed")) reader.wrong("symbol, guard, check or assumed is expected");
  arena->context(reader.quoted());
  const Condition condition = reader.condition();
  if (arena->known(condition) == false) reader.wrong("the condition contradicts the lines before");
  arena->assume(condition, guard ? Origin::guard : check ? Origin::check : Origin::assumed);
}

}  // namespace

Result<SymDim> Arena::parse(std::string_view text) {
  return whole<SymDim>(*this, text, [](Reader& reader) { return reader.sum(); });
}

Result<Condition> Arena::parse_condition(std::string_view text) {
  return whole<Condition>(*this, text, [](Reader& reader) { return reader.condition(); });
}

Result<Arena> parse_arena(std::string_view text, std::string name) {
  Arena arena(std::move(name));
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty()) continue;
    const auto read = [&](Reader& reader) { return read_line(reader, &arena), true; };
    if (const auto done = whole<bool>(arena, line, read); !done.ok()) return done.status();
  }
  arena.context({});
  return arena;
}

}  // namespace tenon::symbolic
