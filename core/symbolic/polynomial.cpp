#include "core/symbolic/polynomial.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tenon::symbolic {
namespace {

// The least integer is not allowed as a coefficient, so that negation and division cannot overflow.
constexpr int64_t kMostCoefficient = std::numeric_limits<int64_t>::max();

bool add_to(int64_t* sum, int64_t number) {
  return !__builtin_add_overflow(*sum, number, sum) && *sum >= -kMostCoefficient;
}
bool multiply_to(int64_t* product, int64_t number) {
  return !__builtin_mul_overflow(*product, number, product) && *product >= -kMostCoefficient;
}

}  // namespace

uint32_t degree(const Monomial& monomial) {
  uint32_t sum = 0;
  for (const Factor& factor : monomial) sum += factor.power;
  return sum;
}

// The greater monomial comes first, so this is below zero if `a` is greater.
int Polynomials::compare(const Monomial& a, const Monomial& b) const {
  const uint32_t degree_a = degree(a);
  const uint32_t degree_b = degree(b);
  if (degree_a != degree_b) return degree_a > degree_b ? -1 : 1;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (const int atoms = order_(a[i].atom, b[i].atom); atoms != 0) return atoms;
    if (a[i].power != b[i].power) return a[i].power > b[i].power ? -1 : 1;
  }
  return 0;  // both have the same degree, so neither is longer
}

Monomial Polynomials::multiply(const Monomial& a, const Monomial& b) const {
  Monomial product = a;
  for (const Factor& factor : b) {
    auto at = product.begin();
    while (at != product.end() && order_(at->atom, factor.atom) < 0) ++at;
    if (at != product.end() && at->atom == factor.atom) {
      at->power += factor.power;
    } else {
      product.insert(at, factor);
    }
  }
  return product;
}

std::optional<Polynomial> Polynomials::normal(Polynomial terms) const {
  for (Term& term : terms) {
    Monomial sorted;
    sorted.swap(term.monomial);
    for (const Factor& factor : sorted) term.monomial = multiply(term.monomial, {factor});
  }
  std::stable_sort(terms.begin(), terms.end(),
                   [&](const Term& a, const Term& b) { return compare(a.monomial, b.monomial) < 0; });
  Polynomial sum;
  for (Term& term : terms) {
    if (!sum.empty() && sum.back().monomial == term.monomial) {
      if (!add_to(&sum.back().coefficient, term.coefficient)) return std::nullopt;
    } else {
      if (!sum.empty() && sum.back().coefficient == 0) sum.pop_back();
      sum.push_back(std::move(term));
    }
  }
  if (!sum.empty() && sum.back().coefficient == 0) sum.pop_back();
  if (sum.size() > kMostTerms) return std::nullopt;
  return sum;
}

std::optional<Polynomial> Polynomials::add(const Polynomial& a, const Polynomial& b, int64_t scale) const {
  Polynomial sum;
  sum.reserve(a.size() + b.size());
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() || j < b.size()) {
    const int order = i == a.size() ? 1 : j == b.size() ? -1 : compare(a[i].monomial, b[j].monomial);
    if (order < 0) {
      sum.push_back(a[i++]);
      continue;
    }
    Term term = b[j++];
    if (!multiply_to(&term.coefficient, scale)) return std::nullopt;
    if (order == 0 && !add_to(&term.coefficient, a[i++].coefficient)) return std::nullopt;
    if (term.coefficient != 0) sum.push_back(std::move(term));
  }
  if (sum.size() > kMostTerms) return std::nullopt;
  return sum;
}

std::optional<Polynomial> Polynomials::multiply(const Polynomial& a, const Polynomial& b) const {
  if (a.size() * b.size() > kMostTerms * 4) return std::nullopt;
  Polynomial terms;
  terms.reserve(a.size() * b.size());
  for (const Term& x : a) {
    for (const Term& y : b) {
      Term term{x.coefficient, multiply(x.monomial, y.monomial)};
      if (!multiply_to(&term.coefficient, y.coefficient) || degree(term.monomial) > kMostDegree) return std::nullopt;
      terms.push_back(std::move(term));
    }
  }
  return normal(std::move(terms));
}

std::optional<Term> Polynomials::quotient(const Term& a, const Term& b) const {
  if (a.coefficient % b.coefficient != 0) return std::nullopt;
  Term result{a.coefficient / b.coefficient, {}};
  size_t j = 0;
  for (const Factor& factor : a.monomial) {
    const bool shared = j < b.monomial.size() && b.monomial[j].atom == factor.atom;
    const uint32_t power = shared ? b.monomial[j++].power : 0;
    if (power > factor.power) return std::nullopt;
    if (power < factor.power) result.monomial.push_back({factor.atom, factor.power - power});
  }
  if (j != b.monomial.size()) return std::nullopt;
  return result;
}

std::optional<Polynomial> Polynomials::exact_quotient(const Polynomial& a, const Polynomial& b) const {
  Polynomial rest = a;
  Polynomial result;
  while (!rest.empty()) {
    const std::optional<Term> term = quotient(rest.front(), b.front());
    if (!term || result.size() == kMostTerms) return std::nullopt;
    const auto taken = multiply(b, {*term});
    if (!taken) return std::nullopt;
    auto less = add(rest, *taken, -1);
    if (!less) return std::nullopt;
    rest = std::move(*less);
    result.push_back(*term);
  }
  return result;
}

Polynomial without_constant(Polynomial p) {
  if (!p.empty() && p.back().monomial.empty()) p.pop_back();
  return p;
}

int64_t content(const Polynomial& p) {
  int64_t divisor = 0;
  for (const Term& term : p) divisor = std::gcd(divisor, term.coefficient);
  return divisor;
}

Polynomial divided(Polynomial p, int64_t divisor) {
  for (Term& term : p) term.coefficient /= divisor;
  return p;
}

Monomial common_factors(const Polynomial& p) {
  if (p.empty()) return {};
  Monomial common = p.front().monomial;
  for (const Term& term : p) {
    Monomial both;
    for (const Factor& factor : common) {
      for (const Factor& other : term.monomial) {
        if (other.atom == factor.atom) both.push_back({factor.atom, std::min(factor.power, other.power)});
      }
    }
    common = std::move(both);
  }
  return common;
}

Polynomial divided(Polynomial p, const Monomial& factors) {
  for (Term& term : p) {
    Monomial rest;
    for (const Factor& factor : term.monomial) {
      uint32_t power = factor.power;
      for (const Factor& out : factors) power -= out.atom == factor.atom ? out.power : 0;
      if (power != 0) rest.push_back({factor.atom, power});
    }
    term.monomial = std::move(rest);
  }
  return p;
}

}  // namespace tenon::symbolic
