// Text from outside, the names in a model for example, as messages and tables show it: one line that only shows. A line
// break would begin a line of its own, a control character would command the terminal, and marks of direction would
// turn what follows.
#pragma once

#include <string>
#include <string_view>

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// `text` with \n, \t and \r for these, \x1b and \u202e for other control characters and marks of direction, \xff for a
// byte that is no UTF-8.
std::string visible(std::string_view text);

// The same, but ends of lines stay: a message of several lines.
std::string visible_lines(std::string_view text);

// `text`, visible, in single quotes, as sentences name things.
std::string quoted(std::string_view text);

}  // namespace tenon

#pragma GCC visibility pop
