// A table as the commands print it.
#pragma once

#include <string>
#include <vector>

namespace tenon::cli {

// On stdout: columns as wide as their widest cell.
void print_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tenon::cli
