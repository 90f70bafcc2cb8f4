// Sizes as text: "4*S0*S1 + (S0 + 3) // 2 - 1". parse.cpp parses it.
#include "core/symbolic/arena.h"
#include "primitives/text/format.h"
#include "primitives/text/quoted.h"

namespace tenon::symbolic {
namespace {

// Operator precedence: an operand with a lower one is put in brackets.
enum class Binding : uint8_t { sum, product, atom };

std::string in_brackets(const std::string& text, bool wanted) { return wanted ? fmt::format("({})", text) : text; }

class Writer {
 public:
  explicit Writer(const Arena& arena) : arena_(arena) {}

  std::string write(SymDim size, Binding around) const {
    if (size.is_number())
      return in_brackets(fmt::format("{}", size.number()), size.number() < 0 && around > Binding::sum);
    const Node& node = arena_.node(size);
    switch (node.kind) {
      case Kind::symbol: return fmt::format("S{}", node.symbol);
      case Kind::sum: return in_brackets(sum(node.terms), around > binding_of(node.terms));
      case Kind::floor_div: return in_brackets(infix(node, "//"), around > Binding::sum);
      case Kind::modulo: return in_brackets(infix(node, "%"), around > Binding::sum);
      case Kind::min: return call("min", node);
      case Kind::max: return call("max", node);
      case Kind::broadcast: break;
    }
    return call("broadcast", node);
  }

 private:
  // A product of two factors without a sign binds like a product, every other sum of terms like a sum.
  static Binding binding_of(const Polynomial& terms) {
    return terms.size() == 1 && terms[0].coefficient > 0 ? Binding::product : Binding::sum;
  }

  std::string sum(const Polynomial& terms) const {
    std::string text;
    for (const Term& term : terms) {
      const bool negative = term.coefficient < 0;
      text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
      text += product(term, negative && &term == &terms.front());
    }
    return text;
  }

  // The product without its sign. In "-(S0 // 2)" the brackets stay, since other languages read "-S0 // 2" as "(-S0) //
  // 2".
  std::string product(const Term& term, bool after_sign) const {
    const int64_t coefficient = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    const bool lone = term.monomial.size() == 1 && coefficient == 1 && term.monomial[0].power == 1 && !after_sign;
    std::string text = term.monomial.empty() || coefficient != 1 ? fmt::format("{}", coefficient) : "";
    for (const Factor& factor : term.monomial) {
      if (!text.empty()) text += '*';
      text += write(arena_.atom(factor.atom), lone ? Binding::sum : Binding::atom);
      if (factor.power != 1) text += fmt::format("^{}", factor.power);
    }
    return text;
  }

  std::string infix(const Node& node, const char* sign) const {
    return fmt::format("{} {} {}", write(node.a, Binding::atom), sign, write(node.b, Binding::atom));
  }
  std::string call(const char* name, const Node& node) const {
    return fmt::format("{}({}, {})", name, write(node.a, Binding::sum), write(node.b, Binding::sum));
  }

  const Arena& arena_;
};

// The bound as text; empty if there is none.
std::string bound(int64_t number) {
  return number == Range::kNone || number == SymDim::kMost ? "" : fmt::format("{}", number);
}

}  // namespace

std::string Arena::text(SymDim size) const { return Writer(*this).write(size, Binding::sum); }

std::string Arena::text(const Condition& condition) const {
  constexpr const char* signs[] = {"==", "!=", "<", "<=", "broadcasts"};
  return fmt::format("{} {} {}", text(condition.a), signs[static_cast<size_t>(condition.relation)], text(condition.b));
}

std::string Arena::text() const {
  std::string result;
  for (size_t i = 0; i < symbols_.size(); ++i) {
    const Symbol& symbol = symbols_[i];
    result += fmt::format("symbol S{} {} in [{}, {}]", i, in_quotes(symbol.source), bound(symbol.range.lo),
                          bound(symbol.range.hi));
    if (symbol.divisor != 1) result += fmt::format(" multiple {}", symbol.divisor);
    if (symbol.hint) result += fmt::format(" hint {}", *symbol.hint);
    result += '\n';
  }
  constexpr const char* origins[] = {"guard", "check", "assumed"};
  for (const Constraint& constraint : constraints_) {
    result += fmt::format("{} {} {}\n", origins[static_cast<size_t>(constraint.origin)], in_quotes(constraint.context),
                          text(constraint.condition));
  }
  return result;
}

}  // namespace tenon::symbolic
