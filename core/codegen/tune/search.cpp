#include "core/codegen/tune/search.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/codegen/tune/candidates.h"

namespace tenon::codegen {
namespace {

constexpr size_t kFewest = 3, kMost = 12;  // least and most runs of a candidate
constexpr size_t kTurns = 9;               // runs in the last comparison

class Search {
 public:
  Search(const Prepare& prepare, const Budget& budget) : prepare_(prepare), budget_(budget) {}

  Result<Found> run(std::span<const Tiles> candidates) {
    TENON_ASSIGN_OR_RETURN(plain_, prepare_(Tiles()));
    if (plain_ == nullptr) return Status(Code::internal, "A kernel has no default tiles.");
    TENON_RETURN_IF_ERROR(warm_up(candidates.size()));
    TENON_ASSIGN_OR_RETURN(found_.default_seconds, least_of(plain_.get()));
    least_ = found_.best_seconds = found_.default_seconds;
    for (const Tiles& tiles : candidates) TENON_RETURN_IF_ERROR(attempt(tiles));
    std::stable_sort(quicker_.begin(), quicker_.end(),
                     [](const Timed& a, const Timed& b) { return a.least < b.least; });
    const std::vector<Timed> quicker = quicker_;
    for (const Timed& each : quicker) {
      const Tiles both = joined(best_tiles_, each.tiles);
      if (!(both == best_tiles_) && !(both == each.tiles)) TENON_RETURN_IF_ERROR(attempt(both));
    }
    TENON_RETURN_IF_ERROR(compare());
    return found_;
  }

 private:
  struct Timed {
    Tiles tiles;
    double least = 0;
  };

  // Runs the defaults first; the first run also determines how many runs fit into the budget.
  Status warm_up(size_t count) {
    TENON_ASSIGN_OR_RETURN(const Sample first, plain_->run());
    const double room = budget_.seconds / static_cast<double>(std::min(count, budget_.candidates) + 1);
    const double runs = first.spent > 0 ? std::floor(room / first.spent) : kMost;
    runs_ = static_cast<size_t>(std::clamp<double>(runs, kFewest, kMost));
    return {};
  }

  // The least time of some runs. It stops early if the trial is hopeless.
  Result<double> least_of(Trial* trial) {
    double least = INFINITY;
    for (size_t i = 0; i < runs_; ++i) {
      TENON_ASSIGN_OR_RETURN(const Sample sample, trial->run());
      spent_ += sample.spent;
      least = std::min(least, sample.seconds);
      if (i > 0 && least > kHopeless * least_) break;
    }
    return least;
  }

  Status attempt(const Tiles& tiles) {
    if (spent_ >= budget_.seconds || found_.tried >= budget_.candidates) return {};
    TENON_ASSIGN_OR_RETURN(std::unique_ptr<Trial> trial, prepare_(tiles));
    if (trial == nullptr) return {};
    ++found_.tried;
    TENON_ASSIGN_OR_RETURN(const Sample warm, trial->run());
    spent_ += warm.spent;
    TENON_ASSIGN_OR_RETURN(const double least, least_of(trial.get()));
    if (least < found_.default_seconds) quicker_.push_back({tiles, least});
    if (least >= least_) return {};
    least_ = least;
    best_ = std::move(trial);
    best_tiles_ = tiles;
    return {};
  }

  // Times both in turn, so that other load on the machine affects both.
  Status compare() {
    if (best_ == nullptr) return {};
    std::vector<double> plain, best;
    for (size_t turn = 0; turn < kTurns; ++turn) {
      TENON_ASSIGN_OR_RETURN(const Sample one, plain_->run());
      TENON_ASSIGN_OR_RETURN(const Sample other, best_->run());
      plain.push_back(one.seconds);
      best.push_back(other.seconds);
    }
    std::sort(plain.begin(), plain.end());
    std::sort(best.begin(), best.end());
    found_.default_seconds = found_.best_seconds = plain[kTurns / 2];
    if (best.front() >= kClearly * plain.front() || best[kTurns / 2] >= kClearly * plain[kTurns / 2]) return {};
    found_.tiles = best_tiles_;
    found_.best_seconds = best[kTurns / 2];
    return {};
  }

  const Prepare& prepare_;
  const Budget budget_;
  std::unique_ptr<Trial> plain_, best_;
  Tiles best_tiles_;
  std::vector<Timed> quicker_;  // faster than the defaults
  double least_ = INFINITY;
  double spent_ = 0;
  size_t runs_ = kMost;
  Found found_;
};

}  // namespace

Result<Found> search(std::span<const Tiles> candidates, const Prepare& prepare, const Budget& budget) {
  return Search(prepare, budget).run(candidates);
}

}  // namespace tenon::codegen
