// Plan: how each value of a program is spread on a grid of ranks, and what the program would then cost on a modelled
// cluster. What is costed is what a run of the plan does (measure.h): each call has its arguments moved to where its
// signature wants them, and each result is moved once to where its readers find it.
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
  Dims grid;                // rank number r stands at the row-major position r
  std::vector<NdSbp> kept;  // by ValueId: how the value is spread between calls
  std::vector<Way> ways;    // by call
  bool is_best = false;     // no other plan of this grid costs less; else it is the best that a search has found
  bool fits = false;        // in the memory of a rank
};

struct PlanOptions {
  // Grids to choose from; empty: a list of all ranks, and every grid of two axes.
  std::vector<Dims> grids = {};
  // Spreads that are given, by ValueId (not of results, for new parameters are where the old ones are): one Sbp per
  // axis of the grid; grids must then have as many axes.
  std::map<ValueId, NdSbp> given = {};
  // In programs of more calls, values whose surroundings look alike, as in the blocks of a network, are spread alike.
  size_t most_alone = 200;
  // How many sums one step of the search may take. Where the whole program needs no more, the plan is the best one.
  double effort = 5e7;
};

// What a run of a plan does, on one rank.
struct Forecast {
  double computing = 0, moving = 0;  // seconds
  uint64_t exchanges = 0;
  uint64_t bytes = 0;                   // that the rank sends
  std::vector<double> bytes_per_level;  // of these, that cross each level of the topology
  uint64_t memory = 0;                  // the most bytes of values that live at one call
  uint64_t held = 0;                    // of these, bytes of inputs and parameters

  double seconds() const { return computing + moving; }
};

// The plan of least modelled time among those that fit in the memory of a rank; if none is found that fits, the one of
// least memory among those that the search came by. `ranks` in all, at most those of the topology.
// Errors: invalid_argument (a grid of another size; a given spread that does not fit).
TENON_API Plan make_plan(const Program& program, const Topology& topology, int64_t ranks,
                         const PlanOptions& options = {});

// Of the rank at `position`; seconds are those of the slowest rank.
TENON_API Forecast forecast(const Program& program, const Plan& plan, const Topology& topology, int64_t position = 0);

// The seconds that a move takes on the slowest rank.
double seconds_of_move(DType dtype, const Dims& dims, const NdSbp& from, const NdSbp& to, const Dims& grid,
                       const Topology& topology, const Lines& lines);
// The coordinates in a grid of the rank at `position`.
Dims coordinates_of(const Dims& grid, int64_t position);

}  // namespace tenon::cluster
