// Tables in text.
#pragma once

#include <string>
#include <vector>

namespace tenon::cli {

// Prints a table to stdout. A column is as wide as its widest cell.
void print_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tenon::cli
