// A line of the data base: what was found for one kernel, as a JSON object.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/codegen/tactics/tiles.h"

namespace tenon::codegen {

struct TunedLine {
  std::string space;  // the kernel without loops, as text, and its variant
  Tiles tiles;        // the defaults: nothing was better
  std::string sizes;  // the parameters that were timed: "16384 768"
  double default_us = 0, best_us = 0;
};

// {"space": "axis i n\n...", "tiles": {"unroll": 2}, "sizes": "16384", "default_us": 812.5, "best_us": 700.1}
std::string line_of(const TunedLine& tuned);
// Nothing for a line that is anything else, in part too: the line may come from anywhere.
std::optional<TunedLine> parse_line(std::string_view line);

// `text` as a string of JSON, with its quotes.
std::string quoted_json(std::string_view text);

}  // namespace tenon::codegen
