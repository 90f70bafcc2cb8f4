// One line of the data base, the result for one kernel, as a JSON object.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/codegen/tactics/tiles.h"

namespace tenon::codegen {

struct TunedLine {
  std::string space;  // text of the kernel without loops, and its variant
  Tiles tiles;        // the defaults if nothing was better
  std::string sizes;  // the parameters that were timed: "16384 768"
  double default_us = 0, best_us = 0;
};

// Example: {"space": "axis i n\n...", "tiles": {"unroll": 2}, "sizes": "16384", "default_us": 812.5, "best_us": 700.1}
std::string line_of(const TunedLine& tuned);
// Parses an untrusted line. Returns nothing if any part of it is malformed.
std::optional<TunedLine> parse_line(std::string_view line);

// `text` as a JSON string, with its quotes.
std::string quoted_json(std::string_view text);

}  // namespace tenon::codegen
