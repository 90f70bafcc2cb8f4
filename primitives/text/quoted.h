// Text in quotes, as dumps that parse back have it: "a \"rich\" one".
#pragma once

#include <string>
#include <string_view>

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// `text` in quotes; quotes, backslashes and ends of lines in it are escaped.
std::string in_quotes(std::string_view text);

// Reads what in_quotes() wrote from the start of `text`, and puts the text into `out`. Returns how many characters it
// read; 0 if `text` begins with no quote, or if the closing quote is missing.
size_t read_quoted(std::string_view text, std::string* out);

}  // namespace tenon

#pragma GCC visibility pop
