#include "random_size.h"

namespace tenon::symbolic {
namespace {

using Op = Tree::Op;
using Wide = __int128;

std::optional<Wide> quotient(Wide a, Wide b, bool up) {
  if (b == 0) return std::nullopt;
  Wide result = a / b;
  while (result * b != a && ((a > 0) == (b > 0)) == up) return up ? result + 1 : result - 1;
  return result;
}

std::optional<Wide> computed(Op op, Wide a, Wide b) {
  switch (op) {
    case Op::add: return a + b;
    case Op::subtract: return a - b;
    case Op::multiply: return a * b;
    case Op::floor_div: return quotient(a, b, false);
    case Op::ceil_div: return quotient(a, b, true);
    case Op::modulo: {
      const auto times = quotient(a, b, false);
      return times ? std::optional(a - *times * b) : std::nullopt;
    }
    case Op::min: return a <= b ? a : b;
    case Op::max: return a >= b ? a : b;
    default: break;
  }
  if (a == 1) return b;
  return b == 1 || a == b ? std::optional(a) : std::nullopt;
}

std::optional<Wide> wide_value(const Tree& tree, std::span<const int64_t> symbols) {
  if (tree.op == Op::number) return tree.number;
  if (tree.op == Op::symbol) return symbols[static_cast<size_t>(tree.number)];
  const auto a = wide_value(*tree.left, symbols);
  const auto b = wide_value(*tree.right, symbols);
  if (!a || !b) return std::nullopt;
  const auto result = computed(tree.op, *a, *b);
  constexpr Wide limit = Wide{1} << 60;
  return result && *result<limit&& * result> - limit ? result : std::nullopt;
}

}  // namespace

std::shared_ptr<const Tree> random_tree(std::mt19937_64& random, int depth, int64_t symbols) {
  auto tree = std::make_shared<Tree>();
  const auto pick = [&](int64_t below) { return static_cast<int64_t>(random() % static_cast<uint64_t>(below)); };
  if (depth == 0 || pick(5) == 0) {
    tree->op = pick(3) == 0 ? Op::number : Op::symbol;
    tree->number = tree->op == Op::number ? pick(13) - 2 : pick(symbols);
    return tree;
  }
  constexpr Op ops[] = {Op::add,       Op::add,      Op::subtract, Op::multiply, Op::multiply, Op::floor_div,
                        Op::floor_div, Op::ceil_div, Op::modulo,   Op::min,      Op::max,      Op::broadcast};
  tree->op = ops[pick(std::size(ops))];
  tree->left = random_tree(random, depth - 1, symbols);
  tree->right = random_tree(random, depth - 1, symbols);
  return tree;
}

SymDim size_of(const Tree& tree, const Arena& arena) {
  if (tree.op == Op::number) return tree.number;
  if (tree.op == Op::symbol) return arena.symbol_at(static_cast<uint32_t>(tree.number));
  const SymDim a = size_of(*tree.left, arena);
  const SymDim b = size_of(*tree.right, arena);
  switch (tree.op) {
    case Op::add: return a + b;
    case Op::subtract: return a - b;
    case Op::multiply: return a * b;
    case Op::floor_div: return floor_div(a, b);
    case Op::ceil_div: return ceil_div(a, b);
    case Op::modulo: return modulo(a, b);
    case Op::min: return min_size(a, b);
    case Op::max: return max_size(a, b);
    default: return current_arena()->broadcast(a, b);
  }
}

std::optional<int64_t> value_of(const Tree& tree, std::span<const int64_t> symbols) {
  const auto value = wide_value(tree, symbols);
  return value ? std::optional(static_cast<int64_t>(*value)) : std::nullopt;
}

std::optional<bool> holds(Relation relation, const Tree& a, const Tree& b, std::span<const int64_t> symbols) {
  const auto x = value_of(a, symbols);
  const auto y = value_of(b, symbols);
  if (!x || !y) return std::nullopt;
  switch (relation) {
    case Relation::eq: return *x == *y;
    case Relation::ne: return *x != *y;
    case Relation::lt: return *x < *y;
    case Relation::le: return *x <= *y;
    default: return *x == *y || *x == 1 || *y == 1;
  }
}

}  // namespace tenon::symbolic
