// Arithmetic of sizes: sums and products as polynomials; quotients, remainders, minima and maxima are simplified as far
// as the known facts allow.
#include <numeric>

#include "core/symbolic/arena.h"
#include "primitives/text/format.h"

namespace tenon::symbolic {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& a, const std::string& b) {
  throw Error(Code::unsupported,
              fmt::format("The {} of the sizes {} and {} is too large an expression: it has more than "
                          "{} terms, a degree above {} or a coefficient that int64 cannot hold.",
                          what, a, b, kMostTerms, kMostDegree));
}

[[noreturn]] void refuse_zero(const std::string& a) {
  throw Error(Code::invalid_argument, fmt::format("The size {} is divided by 0.", a));
}

}  // namespace

Polynomial Arena::sum_of(SymDim a, SymDim b, int64_t scale) const {
  auto sum = polynomials().add(terms(a), terms(b), scale);
  if (!sum) refuse(scale < 0 ? "difference" : "sum", text(a), text(b));
  return std::move(*sum);
}

Polynomial Arena::product_of(const Polynomial& a, const Polynomial& b) const {
  auto product = polynomials().multiply(a, b);
  if (!product) refuse("product", fmt::format("of {} terms", a.size()), fmt::format("of {} terms", b.size()));
  return std::move(*product);
}

SymDim Arena::add(SymDim a, SymDim b, int64_t scale) { return make(sum_of(resolve(a), resolve(b), scale)); }

SymDim Arena::multiply(SymDim a, SymDim b) {
  a = resolve(a);
  b = resolve(b);
  auto product = polynomials().multiply(terms(a), terms(b));
  if (!product) refuse("product", text(a), text(b));
  return make(std::move(*product));
}

// If a quotient by n is multiplied by n, it equals the dividend minus the remainder: 8*(S0 // 8) is S0 - S0 % 8.
Polynomial Arena::without_whole_quotients(Polynomial terms) {
  for (size_t i = 0; i < terms.size(); ++i) {
    for (const Factor& factor : terms[i].monomial) {
      const Node function = nodes_[factor.atom];
      if (function.kind != Kind::floor_div || !function.b.is_number()) continue;
      if (terms[i].coefficient % function.b.number() != 0) continue;
      const Term others{terms[i].coefficient / function.b.number(),
                        divided({terms[i]}, {{factor.atom, 1}})[0].monomial};
      const Polynomial whole = sum_of(function.a, modulo(function.a, function.b), -1);
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i));
      auto sum = polynomials().add(terms, product_of(whole, {others}), 1);
      if (!sum) refuse("sum", text(function.a), text(function.b));
      return without_whole_quotients(std::move(*sum));
    }
  }
  return terms;
}

bool Arena::at_least_one(const Monomial& factors) const {
  for (const Factor& factor : factors) {
    if (nodes_[factor.atom].range.lo < 1) return false;
  }
  return true;
}

SymDim Arena::floor_div(SymDim a, SymDim b) {
  a = resolve(a);
  b = resolve(b);
  if (!b.is_number()) return divide(a, b);
  if (b.number() == 0) refuse_zero(text(a));
  return b.number() < 0 ? divide(terms(add(0, a, -1)), -b.number()) : divide(terms(a), b.number());
}

// The quotient rounded down. Terms that the divisor divides are moved out of it; then the common divisor of the rest is
// cancelled.
SymDim Arena::divide(Polynomial given, int64_t divisor) {
  SymDim whole = 0;
  Polynomial rest;
  int64_t offset = 0;
  for (Term& term : given) {
    if (term.monomial.empty()) {
      whole = add(whole, floor_quotient(term.coefficient, divisor));
      offset = term.coefficient - floor_quotient(term.coefficient, divisor) * divisor;
      continue;
    }
    const int64_t times = term.coefficient / divisor;
    if (times != 0) whole = add(whole, make({{times, term.monomial}}));
    term.coefficient -= times * divisor;
    if (term.coefficient == 0) continue;
    if (divisor_of(term) % divisor == 0 && given.size() > 1) {
      whole = add(whole, divide({term}, divisor));
    } else {
      rest.push_back(std::move(term));
    }
  }
  if (rest.empty()) return whole;
  const int64_t common = std::gcd(content(rest), divisor);
  rest = divided(std::move(rest), common);
  offset = floor_quotient(offset, common);
  divisor /= common;
  if (offset != 0) rest.push_back({offset, {}});
  if (divisor == 1) return add(whole, make(std::move(rest)));
  // A quotient of a quotient is a quotient by the product.
  const Term& first = rest.front();
  if (rest.size() == (offset == 0 ? 1u : 2u) && first.coefficient == 1 && first.monomial.size() == 1 &&
      first.monomial[0].power == 1) {
    const Node inner = nodes_[first.monomial[0].atom];
    int64_t product = 0;
    if (inner.kind == Kind::floor_div && inner.b.is_number() &&
        !__builtin_mul_overflow(inner.b.number(), divisor, &product) && product <= SymDim::kMost) {
      return add(whole, divide(terms(add(inner.a, multiply(offset, inner.b))), product));
    }
  }
  const SymDim dividend = make(std::move(rest));
  const Range quotient = symbolic::floor_div(range(dividend), Range::of(divisor));
  if (quotient.is_number()) return add(whole, quotient.lo);
  return add(whole, make_function(Kind::floor_div, dividend, divisor));
}

SymDim Arena::divide(SymDim a, SymDim b) {
  if (range(b).lo >= 1) {
    const Polynomial dividend = terms(a);
    const Polynomial divisor = terms(b);
    if (auto exact = polynomials().exact_quotient(dividend, divisor)) return make(std::move(*exact));
    Polynomial both = dividend;
    both.insert(both.end(), divisor.begin(), divisor.end());
    Monomial factors = common_factors(both);
    std::erase_if(factors, [&](const Factor& factor) { return nodes_[factor.atom].range.lo < 1; });
    const int64_t common = content(both);
    if (!factors.empty() || common > 1) {
      return floor_div(make(divided(divided(dividend, common), factors)),
                       make(divided(divided(divisor, common), factors)));
    }
    const Range quotient = symbolic::floor_div(range(a), range(b));
    if (quotient.is_number()) return quotient.lo;
  }
  return make_function(Kind::floor_div, a, b);
}

SymDim Arena::modulo(SymDim a, SymDim b) {
  a = resolve(a);
  b = resolve(b);
  if (b.is_number()) {
    if (b.number() == 0) refuse_zero(text(a));
    if (b.number() > 0) return remainder(terms(a), b.number());
    return add(0, remainder(terms(add(0, a, -1)), -b.number()), -1);
  }
  if (range(b).lo >= 1) {
    if (polynomials().exact_quotient(terms(a), terms(b))) return 0;
    if (range(a).lo >= 0 && known(a < b) == true) return a;
  }
  return make_function(Kind::modulo, a, b);
}

SymDim Arena::remainder(Polynomial given, int64_t divisor) {
  Polynomial rest;
  int64_t offset = 0;
  for (Term& term : given) {
    const int64_t left = term.coefficient - floor_quotient(term.coefficient, divisor) * divisor;
    if (term.monomial.empty()) {
      offset = left;
    } else if (left != 0 && divisor_of(term) % divisor != 0) {
      rest.push_back({left, std::move(term.monomial)});
    }
  }
  if (rest.empty()) return offset;
  const int64_t common = std::gcd(content(rest), divisor);
  rest = divided(std::move(rest), common);
  if (floor_quotient(offset, common) != 0) rest.push_back({floor_quotient(offset, common), {}});
  const int64_t below = divisor / common;
  // The remainder of a remainder is the remainder of the dividend.
  for (const Term& term : rest) {
    if (term.monomial.size() != 1 || term.monomial[0].power != 1) continue;
    const Node inner = nodes_[term.monomial[0].atom];
    if (inner.kind != Kind::modulo || !inner.b.is_number() || inner.b.number() % below != 0) continue;
    const SymDim more = add(inner.a, atom(term.monomial[0].atom), -1);
    const SymDim whole = add(make(rest), multiply(more, term.coefficient));
    return add(multiply(remainder(terms(whole), below), common), offset % common);
  }
  const SymDim dividend = make(std::move(rest));
  const Range range = this->range(dividend);
  const SymDim left = range.lo >= 0 && range.hi < below ? dividend : make_function(Kind::modulo, dividend, below);
  return add(multiply(left, common), offset % common);
}

SymDim Arena::min(SymDim a, SymDim b) {
  a = resolve(a);
  b = resolve(b);
  if (const auto less = known(a <= b)) return *less ? a : b;
  if (known(b <= a) == true) return b;
  return order(a, b) < 0 ? make_function(Kind::min, a, b) : make_function(Kind::min, b, a);
}

SymDim Arena::max(SymDim a, SymDim b) {
  a = resolve(a);
  b = resolve(b);
  if (const auto less = known(a <= b)) return *less ? b : a;
  if (known(b <= a) == true) return a;
  return order(a, b) < 0 ? make_function(Kind::max, a, b) : make_function(Kind::max, b, a);
}

SymDim Arena::broadcast(SymDim a, SymDim b) {
  a = resolve(a);
  b = resolve(b);
  if (identical(a, b) || identical(b, 1)) return a;
  if (identical(a, 1)) return b;
  return order(a, b) < 0 ? make_function(Kind::broadcast, a, b) : make_function(Kind::broadcast, b, a);
}

SymDim Arena::substituted(const Node& node) {
  switch (node.kind) {
    case Kind::symbol: break;
    case Kind::floor_div: return floor_div(node.a, node.b);
    case Kind::modulo: return modulo(node.a, node.b);
    case Kind::min: return min(node.a, node.b);
    case Kind::max: return max(node.a, node.b);
    case Kind::broadcast: return broadcast(node.a, node.b);
    case Kind::sum: {
      SymDim sum = 0;
      for (const Term& term : node.terms) {
        SymDim product = term.coefficient;
        for (const Factor& factor : term.monomial) {
          for (uint32_t i = 0; i < factor.power; ++i) product = multiply(product, atom(factor.atom));
        }
        sum = add(sum, product);
      }
      return sum;
    }
  }
  return atom(symbol_nodes_[node.symbol]);
}

SymDim Arena::resolve(SymDim size) {
  if (size.is_number()) return size;
  (void)node(size);  // checks that it belongs to this arena
  if (constraints_.empty()) return size;
  const uint32_t index = size.index();
  if (resolved_.size() < nodes_.size()) resolved_.resize(nodes_.size());
  if (resolved_[index]) return *resolved_[index];
  const auto replaced = replacements_.find(index);
  SymDim result = size;
  if (replaced != replacements_.end()) {
    result = resolve(replaced->second);
  } else if (nodes_[index].kind != Kind::symbol) {
    resolved_[index] = size;  // final unless an operand is replaced
    result = substituted(Node(nodes_[index]));
  }
  resolved_.resize(nodes_.size());
  resolved_[index] = result;
  return result;
}

}  // namespace tenon::symbolic
