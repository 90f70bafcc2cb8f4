#include "sdk/cli/table.h"

#include <algorithm>
#include <cstdio>

#include "core/interpreter/launch_terms.h"
#include "primitives/text/format.h"
#include "primitives/text/visible.h"

namespace tenon::cli {

void print_table(const std::vector<std::vector<std::string>>& given) {
  std::vector<std::vector<std::string>> rows = given;
  for (std::vector<std::string>& row : rows) {
    for (std::string& cell : row) cell = visible(cell);
  }
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  }
}

std::string implementation_text(const std::string& implementation) {
  return is_plain(implementation) ? implementation + " *" : implementation;
}

std::string relaxed_text(size_t relaxed, size_t launches) {
  return fmt::format("precision relaxed: {} of {} launches compute products with rounded factors (tier relaxed)",
                     relaxed, launches);
}

std::string time_text(double ms) { return ms < 1 ? fmt::format("{:.1f} us", ms * 1000) : fmt::format("{:.2f} ms", ms); }

}  // namespace tenon::cli
