// Finds the known word that a mistyped word probably means.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// The number of steps from `a` to `b`. A step adds, drops or replaces a letter or swaps two neighbours (optimal string
// alignment).
size_t edit_distance(std::string_view a, std::string_view b);

// The known word nearest to `word`, at a distance of at most a third of its letters (but at least one). Empty if there
// is none.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace tenon

#pragma GCC visibility pop
