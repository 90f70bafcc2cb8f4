// Search: finds the fastest candidate within a time budget.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "core/codegen/tactics/tiles.h"
#include "primitives/status/status.h"

namespace tenon::codegen {

struct Sample {
  double seconds = 0;  // time of one launch
  double spent = 0;    // time of all launches of the sample
};

// Tiles that are ready to be timed.
class Trial {
 public:
  Trial() = default;
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  virtual ~Trial() = default;
  virtual Result<Sample> run() = 0;
};

// Returns null for tiles that are not worth a trial: they do not suit the kernel, or give the same text as earlier
// ones. An error ends the search.
using Prepare = std::function<Result<std::unique_ptr<Trial>>(const Tiles&)>;

struct Budget {
  double seconds = 0.5;    // total time of launches, for all candidates
  size_t candidates = 16;  // maximum number of candidates that are timed
};

struct Found {
  Tiles tiles;                 // the defaults if nothing is clearly better
  double default_seconds = 0;  // time of one launch
  double best_seconds = 0;     // time of one launch with `tiles`
  size_t tried = 0;            // candidates that were timed
  bool kept = false;           // stored for later runs

  bool better() const { return !(tiles == Tiles()); }
};

// A candidate is better if both its least and its median time, in alternating runs, are below this fraction of the time
// with the defaults.
constexpr double kClearly = 0.97;
// A candidate is given up if it takes more than this multiple of the least time.
constexpr double kHopeless = 1.3;

// Times the defaults, then `candidates` in order until the budget is used up, then the fastest one combined with others
// that beat the defaults. At the end it times the best one and the defaults in turn, beyond the budget. Errors: those
// of `prepare` for the defaults, and of trials.
Result<Found> search(std::span<const Tiles> candidates, const Prepare& prepare, const Budget& budget);

}  // namespace tenon::codegen
