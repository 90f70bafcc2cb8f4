#include "core/codegen/artifact/program.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "core/symbolic/range.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

constexpr size_t kDeepest = 64;
constexpr size_t kLongest = 4096;

constexpr std::string_view kNames[] = {"",    "",    "add", "sub", "mul", "floor_div", "ceil_div", "mod",
                                       "min", "max", "eq",  "ne",  "lt",  "le",        "and"};

// The value of a word with two operands; nothing if it is undefined.
std::optional<int64_t> value_of(Word word, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (word) {
    case Word::add: return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Word::sub: return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Word::mul: return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Word::floor_div:
    case Word::ceil_div:
    case Word::mod:
      if (b == 0 || (b == -1 && a == INT64_MIN)) return std::nullopt;
      if (word == Word::floor_div) return symbolic::floor_quotient(a, b);
      if (word == Word::ceil_div) return symbolic::ceil_quotient(a, b);
      return a % b != 0 && (a < 0) != (b < 0) ? a % b + b : a % b;
    case Word::min: return std::min(a, b);
    case Word::max: return std::max(a, b);
    case Word::eq: return a == b;
    case Word::ne: return a != b;
    case Word::lt: return a < b;
    case Word::le: return a <= b;
    default: return a != 0 && b != 0;
  }
}

}  // namespace

// Writes the words that compute a size.
class ProgramWriter {
 public:
  explicit ProgramWriter(const Kernel& kernel) : kernel_(kernel) { program_.code_.clear(); }

  void write(SymDim size) {
    if (size.is_number()) return word(Word::number, size.number());
    const symbolic::Node& node = kernel_.arena.node(size);
    switch (node.kind) {
      case symbolic::Kind::symbol: return parameter(size);
      case symbolic::Kind::sum: return sum(node.terms);
      case symbolic::Kind::broadcast: return broadcast(node);
      default: break;
    }
    write(node.a);
    write(node.b);
    word(node.kind == symbolic::Kind::floor_div ? Word::floor_div
         : node.kind == symbolic::Kind::modulo  ? Word::mod
         : node.kind == symbolic::Kind::min     ? Word::min
                                                : Word::max);
  }

  void write(const Condition& condition) {
    write(condition.a);
    write(condition.b);
    switch (condition.relation) {
      case Relation::eq: return word(Word::eq);
      case Relation::ne: return word(Word::ne);
      case Relation::lt: return word(Word::lt);
      case Relation::le: return word(Word::le);
      case Relation::broadcastable: break;
    }
    throw Error(Code::unsupported, "A size program cannot test if two sizes broadcast.");
  }

  void word(Word word, int64_t number = 0) { program_.code_.push_back({word, number}); }
  Program take() { return std::move(program_); }

 private:
  void parameter(SymDim symbol) {
    for (size_t i = 0; i < kernel_.parameters.size(); ++i) {
      if (identical(kernel_.parameters[i].symbol, symbol)) return word(Word::parameter, static_cast<int64_t>(i));
    }
    throw Error(Code::invalid_argument,
                fmt::format("{} is not a parameter of kernel {}.", kernel_.arena.text(symbol), kernel_.name));
  }

  void sum(const symbolic::Polynomial& terms) {
    bool first = true;
    for (const symbolic::Term& term : terms) {
      bool started = false;
      for (const symbolic::Factor& factor : term.monomial) {
        for (uint32_t i = 0; i < factor.power; ++i) {
          write(kernel_.arena.atom(factor.atom));
          if (started) word(Word::mul);
          started = true;
        }
      }
      if (!started || term.coefficient != 1) word(Word::number, term.coefficient);
      if (started && term.coefficient != 1) word(Word::mul);
      if (!first) word(Word::add);
      first = false;
    }
  }

  // a, or b if a is 1: a + (b - a) * (a == 1)
  void broadcast(const symbolic::Node& node) {
    write(node.a);
    write(node.b);
    write(node.a);
    word(Word::sub);
    write(node.a);
    word(Word::number, 1);
    word(Word::eq);
    word(Word::mul);
    word(Word::add);
  }

  const Kernel& kernel_;
  Program program_;
};

Result<Program> Program::of(const Kernel& kernel, SymDim size) {
  try {
    ProgramWriter writer(kernel);
    writer.write(size);
    return parse(writer.take().text());
  } catch (const Error& error) {
    return error.status();
  }
}

Result<Program> Program::all(const Kernel& kernel, std::span<const Condition> conditions) {
  try {
    ProgramWriter writer(kernel);
    writer.word(Word::number, 1);
    for (const Condition& condition : conditions) {
      writer.write(condition);
      writer.word(Word::both);
    }
    return parse(writer.take().text());
  } catch (const Error& error) {
    return error.status();
  }
}

Program Program::chunks(int64_t divisor) const {
  if (divisor == 1) return *this;
  Program result = *this;
  result.code_.push_back({Word::number, divisor});
  result.code_.push_back({Word::ceil_div, 0});
  return result;
}

Result<int64_t> Program::run(std::span<const int64_t> parameters) const {
  std::array<int64_t, kDeepest> stack;
  size_t depth = 0;
  for (const Step& step : code_) {
    if (step.word == Word::number) {
      stack[depth++] = step.number;
    } else if (step.word == Word::parameter) {
      if (static_cast<size_t>(step.number) >= parameters.size()) {
        return Status(Code::invalid_argument,
                      fmt::format("The program '{}' reads more parameters than the {} that were given.", text(),
                                  parameters.size()));
      }
      stack[depth++] = parameters[static_cast<size_t>(step.number)];
    } else {
      const std::optional<int64_t> value = value_of(step.word, stack[depth - 2], stack[depth - 1]);
      if (!value) {
        return Status(Code::invalid_argument,
                      fmt::format("The program '{}' divides by 0 or overflows int64 in {} of {} and {}.", text(),
                                  kNames[static_cast<size_t>(step.word)], stack[depth - 2], stack[depth - 1]));
      }
      stack[--depth - 1] = *value;
    }
  }
  return stack[0];
}

std::string Program::text() const {
  std::string result;
  for (const Step& step : code_) {
    if (!result.empty()) result += ' ';
    if (step.word == Word::number) {
      result += fmt::format("{}", step.number);
    } else if (step.word == Word::parameter) {
      result += fmt::format("p{}", step.number);
    } else {
      result += kNames[static_cast<size_t>(step.word)];
    }
  }
  return result;
}

Result<Program> Program::parse(std::string_view text) {
  Program result;
  result.code_.clear();
  size_t depth = 0;
  const auto refuse = [&](std::string_view word, std::string_view what) {
    return Status(Code::invalid_argument,
                  fmt::format("The program '{}': at '{}' {}.", text.substr(0, 200), word, what));
  };
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const bool is_parameter = word.size() > 1 && word[0] == 'p' && word[1] >= '0' && word[1] <= '9';
    const std::string_view digits = is_parameter ? word.substr(1) : word;
    Step step{is_parameter ? Word::parameter : Word::number, 0};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step.number);
    const bool is_number = error == std::errc() && end == digits.data() + digits.size();
    if (is_number) {
      ++depth;
    } else {
      const auto* const found = std::find(std::begin(kNames) + 2, std::end(kNames), word);
      if (found == std::end(kNames)) return refuse(word, "a number, a parameter or a word of two operands is expected");
      if (depth < 2) return refuse(word, "two operands are expected before it");
      step = {static_cast<Word>(found - std::begin(kNames)), 0};
      --depth;
    }
    if (depth > kDeepest || result.code_.size() >= kLongest) return refuse(word, "it is too long");
    result.code_.push_back(step);
  }
  if (depth != 1) return refuse("the end", fmt::format("one number is expected, not {}", depth));
  return result;
}

std::string Program::c_text() const {
  std::vector<std::string> stack;
  for (const Step& step : code_) {
    if (step.word == Word::number) {
      stack.push_back(fmt::format("INT64_C({})", step.number));
      continue;
    }
    if (step.word == Word::parameter) {
      stack.push_back(fmt::format("p[{}]", step.number));
      continue;
    }
    const std::string b = std::move(stack.back());
    stack.pop_back();
    const std::string a = std::move(stack.back());
    switch (step.word) {
      case Word::floor_div: stack.back() = fmt::format("ep_floor_quotient({}, {})", a, b); break;
      case Word::ceil_div: stack.back() = fmt::format("-ep_floor_quotient(-{}, {})", a, b); break;
      case Word::mod: stack.back() = fmt::format("ep_floor_rest({}, {})", a, b); break;
      case Word::min: stack.back() = fmt::format("ep_least({}, {})", a, b); break;
      case Word::max: stack.back() = fmt::format("ep_most({}, {})", a, b); break;
      default: {
        constexpr std::string_view signs[] = {"", "", "+", "-", "*", "", "", "", "", "", "==", "!=", "<", "<=", "&&"};
        const std::string_view sign = signs[static_cast<size_t>(step.word)];
        stack.back() = fmt::format("({} {} {})", a, sign, b);
      }
    }
  }
  return stack.back();
}

}  // namespace tenon::codegen
