// Finds the known word that a mistyped one was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// How many steps turn `a` into `b`; a step adds, drops or replaces a letter or swaps two neighbours (optimal string
// alignment).
size_t edit_distance(std::string_view a, std::string_view b);

// The known word nearest to `word`, at most a third of its letters (and at least one) away; empty if there is none.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace tenon

#pragma GCC visibility pop
