// Tables and times in text.
#pragma once

#include <string>
#include <vector>

namespace tenon::cli {

// Prints a table to stdout. A column is as wide as its widest cell.
void print_table(const std::vector<std::vector<std::string>>& rows);

// "12.34 ms", or "420.0 us" below a millisecond.
std::string time_text(double ms);

}  // namespace tenon::cli
