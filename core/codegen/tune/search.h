// Search: the best of some candidates, by their times, within a budget.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "core/codegen/tactics/tiles.h"
#include "primitives/status/status.h"

namespace tenon::codegen {

struct Sample {
  double seconds = 0;  // of one launch
  double spent = 0;    // for the sample: of all its launches
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

// Null for tiles that are not worth a trial: they do not suit the kernel, or give the text of earlier ones. Errors end
// the search.
using Prepare = std::function<Result<std::unique_ptr<Trial>>(const Tiles&)>;

struct Budget {
  double seconds = 0.5;    // of launches, for all candidates together
  size_t candidates = 16;  // at most so many are timed
};

struct Found {
  Tiles tiles;                 // the defaults, if nothing is clearly better
  double default_seconds = 0;  // of a launch
  double best_seconds = 0;     // of those tiles
  size_t tried = 0;            // candidates that were timed
  bool kept = false;           // for later runs

  bool better() const { return !(tiles == Tiles()); }
};

// A candidate is better if it takes less than this part of the time of the defaults, in its least and in its median of
// runs by turns.
constexpr double kClearly = 0.97;
// A candidate beyond this part of the least time is given up.
constexpr double kHopeless = 1.3;

// Times the defaults, then `candidates` in their order until the budget is used up, then the quickest of them joined
// with others that were quicker than the defaults; and at the end the best one and the defaults by turns, beyond the
// budget. Errors: those of `prepare` for the defaults, and of trials.
Result<Found> search(std::span<const Tiles> candidates, const Prepare& prepare, const Budget& budget);

}  // namespace tenon::codegen
