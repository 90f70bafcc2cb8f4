// How an Arena answers comparisons, and the facts that it learns from the answers.
#include <algorithm>
#include <numeric>

#include "core/symbolic/arena.h"
#include "core/symbolic/evaluate.h"
#include "primitives/text/format.h"

namespace tenon::symbolic {
namespace {

Condition opposite(const Condition& condition) {
  switch (condition.relation) {
    case Relation::eq: return {Relation::ne, condition.a, condition.b};
    case Relation::ne: return {Relation::eq, condition.a, condition.b};
    case Relation::lt: return {Relation::le, condition.b, condition.a};
    case Relation::le: return {Relation::lt, condition.b, condition.a};
    case Relation::broadcastable: break;
  }
  return condition;
}

std::optional<bool> negated(std::optional<bool> answer) { return answer ? std::optional(!*answer) : std::nullopt; }

}  // namespace

std::optional<bool> Arena::known(const Condition& condition) {
  const SymDim a = resolve(condition.a);
  const SymDim b = resolve(condition.b);
  if (a.is_number() && b.is_number()) return holds(condition.relation, a.number(), b.number());
  if (identical(a, b)) return condition.relation != Relation::ne && condition.relation != Relation::lt;
  if (condition.relation == Relation::ne) return negated(known(opposite(condition)));
  if (condition.relation == Relation::broadcastable) {
    const std::optional<bool> ones[] = {known(a == 1), known(b == 1)};
    if (ones[0] == true || ones[1] == true) return true;
    const std::optional<bool> equal = known(a == b);
    if (equal == true || (ones[0] == false && ones[1] == false)) return equal;
    return std::nullopt;
  }
  const auto difference = polynomials().add(terms(a), terms(b), -1);
  if (!difference) return std::nullopt;
  const Range range = range_of(*difference);
  if (condition.relation == Relation::lt) {
    return range.hi < 0 ? std::optional(true) : range.lo >= 0 ? std::optional(false) : std::nullopt;
  }
  if (condition.relation == Relation::le) {
    return range.hi <= 0 ? std::optional(true) : range.lo > 0 ? std::optional(false) : std::nullopt;
  }
  if (!range.holds(0)) return false;
  if (range.is_number()) return true;
  int64_t divisor = 0;
  for (const Term& term : without_constant(*difference)) divisor = std::gcd(divisor, divisor_of(term));
  const int64_t offset = constant_of(*difference);
  if (divisor > 1 && offset % divisor != 0) return false;
  const Form form = form_of(make(*difference));
  const auto fact = form.base.is_number() ? facts_.end() : facts_.find(form.base.index());
  if (fact != facts_.end() && form.offset % form.scale == 0) {
    const auto& excluded = fact->second.excluded;
    if (std::find(excluded.begin(), excluded.end(), -form.offset / form.scale) != excluded.end()) return false;
  }
  return std::nullopt;
}

std::optional<bool> Arena::hinted(const Condition& condition) const {
  const std::optional<int64_t> a = hint(condition.a);
  const std::optional<int64_t> b = hint(condition.b);
  if (!a || !b) return std::nullopt;
  return holds(condition.relation, *a, *b);
}

// Rewrites an equality between a minimum or maximum and one of its operands: `min(a, b) == a` is `a <= b`.
std::optional<Condition> Arena::without_extreme(const Condition& condition) {
  const Polynomial difference = sum_of(condition.a, condition.b, -1);
  for (const Term& term : difference) {
    if (term.monomial.size() != 1 || term.monomial[0].power != 1) continue;
    const Node function = nodes_[term.monomial[0].atom];
    if (function.kind != Kind::min && function.kind != Kind::max) continue;
    for (const auto& [operand, other] : {std::pair(function.a, function.b), std::pair(function.b, function.a)}) {
      const auto others = polynomials().add(difference, {term}, -1);
      const auto rest = others ? polynomials().add(*others, terms(operand), term.coefficient) : std::nullopt;
      if (!rest || !rest->empty()) continue;
      const Condition holding = function.kind == Kind::min ? operand <= other : other <= operand;
      return condition.relation == Relation::eq ? holding : opposite(holding);
    }
  }
  return std::nullopt;
}

// An equivalent condition without common factors, in which each side has only positive terms.
Condition Arena::tidy(const Condition& condition) {
  const SymDim a = resolve(condition.a);
  const SymDim b = resolve(condition.b);
  const bool repeats = known(a == 1) != false || known(b == 1) != false;
  if (condition.relation == Relation::broadcastable && repeats) return {condition.relation, a, b};
  const Relation relation = condition.relation == Relation::broadcastable ? Relation::eq : condition.relation;
  Polynomial difference = sum_of(a, b, -1);
  if (difference.empty()) return {relation, 0, 0};
  if (relation == Relation::eq || relation == Relation::ne) {
    if (const auto order = without_extreme({relation, a, b})) return tidy(*order);
    Monomial factors = common_factors(difference);
    std::erase_if(factors, [&](const Factor& factor) { return !at_least_one({factor}); });
    const int64_t sign = difference.front().coefficient < 0 ? -1 : 1;
    const int64_t common = sign * content(difference);
    difference = divided(divided(std::move(difference), factors), common);
  }
  const int64_t constant = constant_of(difference);
  if (constant < SymDim::kLeast || constant > SymDim::kMost) return {relation, a, b};  // exceeds the limits of a side
  Polynomial sides[2];
  for (Term& term : difference) {
    const bool left = term.coefficient > 0;
    if (!left) term.coefficient = -term.coefficient;
    sides[left ? 0 : 1].push_back(std::move(term));
  }
  return {relation, make(std::move(sides[0])), make(std::move(sides[1]))};
}

void Arena::note(Origin origin, const Condition& condition) {
  if (frozen_) throw Error(Code::internal, fmt::format("{} is frozen, so no condition can be added to it.", name_));
  if (!noted_.insert({condition.relation, condition.a.word(), condition.b.word()}).second) return;
  constraints_.push_back({origin, condition, context_});
  learn(condition);
}

bool Arena::decide(const Condition& condition) {
  if (const auto answer = known(condition)) return *answer;
  const Condition question{condition.relation, resolve(condition.a), resolve(condition.b)};
  const auto answer = hinted(question);
  if (!answer) {
    throw Undecided(
        fmt::format("The condition {} decides how {} continues, but its sizes are known only when the program runs.",
                    text(question), context_.empty() ? name_ : context_));
  }
  note(Origin::guard, tidy(*answer ? question : opposite(question)));
  return *answer;
}

bool Arena::require(const Condition& condition) {
  if (const auto answer = known(condition)) return *answer;
  const Condition question{condition.relation, resolve(condition.a), resolve(condition.b)};
  const auto answer = hinted(question);
  if (answer == false) return false;
  note(answer ? Origin::guard : Origin::check, tidy(question));
  return true;
}

void Arena::assume(const Condition& condition, Origin origin) {
  if (!known(condition)) note(origin, tidy(condition));
}

void Arena::learn(const Condition& condition) {
  if (condition.relation == Relation::broadcastable) return;  // until one of them is known not to be 1
  Polynomial difference = sum_of(resolve(condition.a), resolve(condition.b), -1);
  if (condition.relation == Relation::eq) return learn_zero(std::move(difference));
  const Form form = form_of(make(std::move(difference)));
  if (form.scale == 0) return;
  Fact fact;
  if (condition.relation == Relation::ne) {
    if (form.offset % form.scale != 0) return;
    const int64_t value = -form.offset / form.scale;
    const Range now = range(form.base);
    if (now.lo == value) fact.range.lo = value + 1;
    if (now.hi == value) fact.range.hi = value - 1;
    fact.excluded.push_back(value);
  } else {
    // scale * base <= bound
    const int64_t bound = -form.offset - (condition.relation == Relation::lt ? 1 : 0);
    (form.scale > 0 ? fact.range.hi : fact.range.lo) =
        form.scale > 0 ? floor_quotient(bound, form.scale) : ceil_quotient(bound, form.scale);
  }
  learn_fact(form.base, fact);
}

// Stores `fact` about `size`, an expression, at the base of its form.
void Arena::learn_fact(SymDim size, const Fact& fact) {
  const Form form = form_of(resolve(size));
  if (form.scale == 0) return;
  resolved_.clear();
  Fact& kept = facts_[form.base.index()];
  if (form.scale == 1 && form.offset == 0) {
    kept.range = intersect(kept.range, fact.range);
    kept.divisor = common_multiple(kept.divisor, fact.divisor);
    kept.excluded.insert(kept.excluded.end(), fact.excluded.begin(), fact.excluded.end());
  } else {
    // lo <= scale * base + offset <= hi
    const Range moved = symbolic::add(fact.range, Range::of(-form.offset));
    const Range upright = form.scale > 0 ? moved : negate(moved);
    const int64_t scale = form.scale > 0 ? form.scale : -form.scale;
    if (upright.lo != Range::kNone) kept.range.lo = std::max(kept.range.lo, ceil_quotient(upright.lo, scale));
    if (upright.hi != Range::kEndless) kept.range.hi = std::min(kept.range.hi, floor_quotient(upright.hi, scale));
    for (const int64_t value : fact.excluded) {
      if ((value - form.offset) % form.scale == 0) kept.excluded.push_back((value - form.offset) / form.scale);
    }
    if (form.offset == 0) kept.divisor = common_multiple(kept.divisor, fact.divisor / std::gcd(fact.divisor, scale));
  }
  refresh(form.base.index());
}

bool Arena::mentions(SymDim size, uint32_t searched) const {
  if (size.is_number()) return false;
  if (size.index() == searched) return true;
  const Node& found = node(size);
  if (mentions(found.a, searched) || mentions(found.b, searched)) return true;
  for (const Term& term : found.terms) {
    for (const Factor& factor : term.monomial) {
      if (mentions(atom(factor.atom), searched)) return true;
    }
  }
  return false;
}

// The atom of `sum` for which `sum == 0` can be solved: first one without a hint, then the youngest symbol.
std::optional<uint32_t> Arena::solvable(const Polynomial& sum) const {
  std::optional<uint32_t> best;
  const auto rank = [&](uint32_t index) {
    return std::tuple(!nodes_[index].hint.has_value(), nodes_[index].kind == Kind::symbol, nodes_[index].symbol);
  };
  const bool only = without_constant(sum).size() == 1;
  for (const Term& term : sum) {
    if (term.monomial.size() != 1 || term.monomial[0].power != 1) continue;
    if (term.coefficient != 1 && term.coefficient != -1) continue;
    const uint32_t index = term.monomial[0].atom;
    if (nodes_[index].kind != Kind::symbol && !only) continue;
    const auto elsewhere = [&](const Term& other) {
      const auto inside = [&](const Factor& factor) { return mentions(atom(factor.atom), index); };
      return &other != &term && std::any_of(other.monomial.begin(), other.monomial.end(), inside);
    };
    if (std::any_of(sum.begin(), sum.end(), elsewhere)) continue;
    if (!best || rank(index) > rank(*best)) best = index;
  }
  return best;
}

void Arena::learn_zero(Polynomial sum) {
  Monomial factors = common_factors(sum);
  std::erase_if(factors, [&](const Factor& factor) { return !at_least_one({factor}); });
  sum = divided(std::move(sum), factors);
  if (without_constant(sum).empty()) return;
  const int64_t common = content(sum);
  sum = divided(std::move(sum), common);
  const std::optional<uint32_t> index = solvable(sum);
  if (!index) {
    const Form form = form_of(make(sum));
    Fact fact;
    if (form.scale != 0 && form.offset % form.scale == 0) fact.range = Range::of(-form.offset / form.scale);
    return learn_fact(form.base, fact);
  }
  Polynomial others;
  int64_t coefficient = 0;
  for (Term& term : sum) {
    const bool solved = term.monomial.size() == 1 && term.monomial[0].atom == *index;
    if (solved) {
      coefficient = term.coefficient;
    } else {
      others.push_back(std::move(term));
    }
  }
  replace(*index, make(divided(std::move(others), -coefficient)));
}

// Replaces atom `index` by `with` from now on, and transfers its facts.
void Arena::replace(uint32_t index, SymDim with) {
  const Node replaced = nodes_[index];
  replacements_[index] = with;
  resolved_.clear();
  std::vector<std::pair<uint32_t, Fact>> moved;
  for (const auto& [base, fact] : facts_) {
    if (!identical(resolve(atom(base)), atom(base))) moved.emplace_back(base, fact);
  }
  for (const auto& [base, fact] : moved) {
    facts_.erase(base);
    learn_fact(atom(base), fact);
  }
  if (replaced.kind == Kind::symbol) {
    const Symbol& declared = symbols_[replaced.symbol];
    learn_fact(atom(index), {declared.range, declared.divisor, {}});
  } else if (replaced.kind == Kind::modulo && identical(with, 0) && replaced.b.is_number()) {
    learn_fact(replaced.a, {{}, replaced.b.number(), {}});
  }
}

}  // namespace tenon::symbolic
