// Plan: the layout of each value of a program on a grid of ranks, and the modelled cost of a run on a cluster. The
// model follows the execution (measure.h): each argument of a call is moved into the layout of the call's signature,
// and each result is moved once, into the layout that its readers expect.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/cluster/program.h"
#include "core/cluster/topology.h"
#include "core/cluster/ways.h"
#include "core/device/export.h"

namespace tenon::cluster {

struct Plan {
  Dims grid;                // rank r is at the row-major position r
  std::vector<NdSbp> kept;  // by ValueId: the layout of the value between calls
  std::vector<Way> ways;    // indexed by call
  bool is_best = false;     // true if no other plan of this grid costs less; else it is the best that the search found
  bool fits = false;        // true if it fits into the memory of a rank
};

struct PlanOptions {
  // Grids to choose from; empty: a list of all ranks, and every grid of two axes.
  std::vector<Dims> grids = {};
  // Layouts that are fixed, by ValueId: one Sbp per axis of the grid. Grids must then have that many axes. Results
  // cannot be fixed, since new parameters have the layout of the old ones.
  std::map<ValueId, NdSbp> given = {};
  // In programs with more calls than this, values with equal surroundings get the same layout, as in the blocks of a
  // network.
  size_t most_alone = 200;
  // The most sums that one step of the search may take. If the whole program needs no more, the plan is the best one.
  double effort = 5e7;
};

// The modelled cost of a run of a plan on one rank.
struct Forecast {
  double computing = 0, moving = 0;  // seconds
  uint64_t exchanges = 0;
  uint64_t bytes = 0;                   // sent by the rank
  std::vector<double> bytes_per_level;  // the part of `bytes` that crosses each level of the topology
  uint64_t memory = 0;                  // the most bytes of values alive at one call
  uint64_t held = 0;                    // the part of `memory` for inputs and parameters

  double seconds() const { return computing + moving; }
};

// The plan with the least modelled time that fits into the memory of a rank. If none fits, the plan with the least
// memory that the search found. `ranks` is at most the ranks of the topology. Errors: invalid_argument (a grid of
// another size; a fixed layout that does not fit).
TENON_API Plan make_plan(const Program& program, const Topology& topology, int64_t ranks,
                         const PlanOptions& options = {});

// The forecast for the rank at `position`, with the seconds of the slowest rank.
TENON_API Forecast forecast(const Program& program, const Plan& plan, const Topology& topology, int64_t position = 0);

// The seconds that a move takes on the slowest rank.
double seconds_of_move(DType dtype, const Dims& dims, const NdSbp& from, const NdSbp& to, const Dims& grid,
                       const Topology& topology, const Lines& lines);
// The coordinates in a grid of the rank at `position`.
Dims coordinates_of(const Dims& grid, int64_t position);

}  // namespace tenon::cluster
