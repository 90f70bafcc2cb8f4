// Polynomial: a sum of products of atoms with integer coefficients, in normal form. An atom is the number that an Arena
// gave to a symbol, quotient, remainder, minimum, maximum or broadcast. Internal to core/symbolic.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace tenon::symbolic {

struct Factor {
  uint32_t atom = 0;
  uint32_t power = 1;
  friend bool operator==(const Factor&, const Factor&) = default;
};
using Monomial = std::vector<Factor>;  // in the order of atoms; empty: 1

struct Term {
  int64_t coefficient = 0;
  Monomial monomial;
  friend bool operator==(const Term&, const Term&) = default;
};

// Terms in descending order of monomials (graded, then lexicographic), without zero coefficients. The constant comes
// last.
using Polynomial = std::vector<Term>;

// Below zero if atom `a` comes before `b`, 0 if they are the same.
using AtomOrder = std::function<int(uint32_t a, uint32_t b)>;

// The most terms of a polynomial, and the highest degree of a term.
constexpr size_t kMostTerms = 256;
constexpr uint32_t kMostDegree = 64;

// Arithmetic of polynomials under one order of atoms. Returns nothing if a coefficient overflows or a limit is
// exceeded.
class Polynomials {
 public:
  explicit Polynomials(AtomOrder order) : order_(std::move(order)) {}

  // Sorts the factors and terms, and adds up equal ones.
  std::optional<Polynomial> normal(Polynomial terms) const;
  // a + scale * b
  std::optional<Polynomial> add(const Polynomial& a, const Polynomial& b, int64_t scale) const;
  std::optional<Polynomial> multiply(const Polynomial& a, const Polynomial& b) const;
  // a / b if b divides a without a remainder, else nothing; b must not be empty.
  std::optional<Polynomial> exact_quotient(const Polynomial& a, const Polynomial& b) const;
  Monomial multiply(const Monomial& a, const Monomial& b) const;

 private:
  int compare(const Monomial& a, const Monomial& b) const;
  // a / b, or nothing if b does not divide a.
  std::optional<Term> quotient(const Term& a, const Term& b) const;

  AtomOrder order_;
};

inline Polynomial constant(int64_t number) { return number == 0 ? Polynomial{} : Polynomial{{number, {}}}; }
// The term without atoms; 0 if there is none.
inline int64_t constant_of(const Polynomial& p) {
  return p.empty() || !p.back().monomial.empty() ? 0 : p.back().coefficient;
}
Polynomial without_constant(Polynomial p);
// The greatest common divisor of all coefficients; 0 if there are no terms.
int64_t content(const Polynomial& p);
// Divides each coefficient by `divisor`, which must divide it.
Polynomial divided(Polynomial p, int64_t divisor);
// The factors that all terms of `p` share.
Monomial common_factors(const Polynomial& p);
// Divides each monomial by `factors`, which must divide it.
Polynomial divided(Polynomial p, const Monomial& factors);
uint32_t degree(const Monomial& monomial);

}  // namespace tenon::symbolic
