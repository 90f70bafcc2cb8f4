// Makes text from outside, such as names in a model, safe for messages and tables: one line that only shows. A newline
// would start a new line, a control character would command the terminal, and bidirectional marks would reorder the
// rest.
#pragma once

#include <string>
#include <string_view>

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// `text` with \n, \t and \r for these characters, \x1b and \u202e for other control characters and bidirectional marks,
// and \xff for a byte that is not UTF-8.
std::string visible(std::string_view text);

// Like `visible`, but keeps newlines, for a message of several lines.
std::string visible_lines(std::string_view text);

// `text`, made visible, in single quotes, as in error sentences.
std::string quoted(std::string_view text);

}  // namespace tenon

#pragma GCC visibility pop
