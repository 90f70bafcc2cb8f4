// Tables and times in text.
#pragma once

#include <string>
#include <vector>

namespace tenon::cli {

// Prints a table to stdout. A column is as wide as its widest cell.
void print_table(const std::vector<std::vector<std::string>>& rows);

// The name of an implementation in a table: "onednn", or "plain *" for a loop that is not optimised.
std::string implementation_text(const std::string& implementation);

// The last line of a report under precision relaxed: how many of the launches made use of it.
std::string relaxed_text(size_t relaxed, size_t launches);

// "12.34 ms", or "420.0 us" below a millisecond.
std::string time_text(double ms);

}  // namespace tenon::cli
