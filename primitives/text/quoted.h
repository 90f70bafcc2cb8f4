// Text in quotes, as in dumps that can be parsed back: "a \"rich\" one".
#pragma once

#include <string>
#include <string_view>

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// `text` in quotes, with quotes, backslashes and newlines escaped.
std::string in_quotes(std::string_view text);

// Parses a text that in_quotes() wrote, from the start of `text`, and stores it in `out`. Returns the number of
// characters read; 0 if `text` does not begin with a quote or the closing quote is missing.
size_t read_quoted(std::string_view text, std::string* out);

}  // namespace tenon

#pragma GCC visibility pop
