// The nearest of a few known words to one that was mistyped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon::loader {

// How many letters to add, leave out, replace, or swap with the next make one of the other (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b);

// The word nearest to `word`, at most a third of its letters (and at least one) apart; empty if none is.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace tenon::loader

#pragma GCC visibility pop
