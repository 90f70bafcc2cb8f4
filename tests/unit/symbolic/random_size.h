// Random sizes, with an evaluator that shares nothing with core/symbolic: a tree, computed directly in 128 bits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "core/symbolic/arena.h"

namespace tenon::symbolic {

struct Tree {
  enum class Op : uint8_t { number, symbol, add, subtract, multiply, floor_div, ceil_div, modulo, min, max, broadcast };
  Op op = Op::number;
  int64_t number = 0;  // the number, or the index of the symbol
  std::shared_ptr<const Tree> left, right;
};

// A tree over symbols 0 to `symbols` - 1. Its depth is at most `depth`.
std::shared_ptr<const Tree> random_tree(std::mt19937_64& random, int depth, int64_t symbols);

// Builds the size with the operators of SymDim in the open arena.
SymDim size_of(const Tree& tree, const Arena& arena);

// Returns nothing if it divides by 0, does not broadcast, or exceeds 2^60 on the way.
std::optional<int64_t> value_of(const Tree& tree, std::span<const int64_t> symbols);

// Returns nothing if one side has no value.
std::optional<bool> holds(Relation relation, const Tree& a, const Tree& b, std::span<const int64_t> symbols);

}  // namespace tenon::symbolic
