#include "core/codegen/emit/size_text.h"

#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

using symbolic::Kind;
using SymbolText = std::function<std::string(uint32_t)>;

std::string number_text(int64_t number) {
  if (number > INT32_MIN && number <= INT32_MAX) return fmt::format("{}", number);
  return fmt::format("INT64_C({})", number);
}

std::string atom_text(const symbolic::Arena& arena, SymDim size, const SymbolText& symbol);

std::string sum_text(const symbolic::Arena& arena, const symbolic::Polynomial& terms, const SymbolText& symbol) {
  std::string text;
  for (const symbolic::Term& term : terms) {
    const bool negative = term.coefficient < 0;
    const int64_t coefficient = negative ? -term.coefficient : term.coefficient;
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    std::string product = term.monomial.empty() || coefficient != 1 ? number_text(coefficient) : "";
    for (const symbolic::Factor& factor : term.monomial) {
      const std::string part = atom_text(arena, arena.atom(factor.atom), symbol);
      for (uint32_t i = 0; i < factor.power; ++i) product += (product.empty() ? "" : " * ") + part;
    }
    text += product;
  }
  return text;
}

// The text of a size as an operand: a name, a number, a call, or a sum in brackets.
std::string atom_text(const symbolic::Arena& arena, SymDim size, const SymbolText& symbol) {
  if (size.is_number()) {
    return size.number() < 0 ? fmt::format("({})", number_text(size.number())) : number_text(size.number());
  }
  const symbolic::Node& node = arena.node(size);
  if (node.kind == Kind::symbol) return symbol(size.index());
  if (node.kind == Kind::sum) return fmt::format("({})", sum_text(arena, node.terms, symbol));
  const std::string a = atom_text(arena, node.a, symbol);
  const std::string b = atom_text(arena, node.b, symbol);
  const bool plain = arena.range(node.a).lo >= 0 && arena.range(node.b).lo >= 0;
  switch (node.kind) {
    case Kind::floor_div:
      return plain ? fmt::format("({} / {})", a, b) : fmt::format("ep_floor_quotient({}, {})", a, b);
    case Kind::modulo: return plain ? fmt::format("({} % {})", a, b) : fmt::format("ep_floor_rest({}, {})", a, b);
    case Kind::min: return fmt::format("ep_least({}, {})", a, b);
    case Kind::max: return fmt::format("ep_most({}, {})", a, b);
    default: break;
  }
  return fmt::format("({} == 1 ? {} : {})", a, b, a);
}

}  // namespace

std::string size_text(const symbolic::Arena& arena, SymDim size, const SymbolText& symbol) {
  const std::string text = atom_text(arena, size, symbol);
  const bool is_sum = !size.is_number() && arena.node(size).kind == Kind::sum;
  return is_sum ? text.substr(1, text.size() - 2) : text;
}

}  // namespace tenon::codegen
