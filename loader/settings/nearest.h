// The nearest of a few known words to one that was mistyped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon::loader {

// Levenshtein distance.
size_t edit_distance(std::string_view a, std::string_view b);

// The word nearest to `word`, at most a third of its letters (and at least two) apart; empty if none is.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace tenon::loader

#pragma GCC visibility pop
