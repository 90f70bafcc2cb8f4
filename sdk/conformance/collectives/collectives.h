// The kit for plug-ins that carry data between processes: ep_api/COLLECTIVES.md, rule by rule.
//
//   mpirun -n 3 tenon conform libtenon_mpi.so
//   mpirun -n 2 tenon conform libtenon_nccl.so --beside libtenon_mpi.so --devices libtenon_cuda.so
//
// Every rank runs every test, in one process and one order, since all take part in each exchange. Tests that need two
// ranks are skipped on one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sdk/conformance/collectives/ranks.h"
#include "sdk/conformance/host.h"
#include "sdk/conformance/verdict.h"

namespace tenon::conformance {

struct CollectivesTest {
  std::string_view name;  // "exchanges/kinds"
  std::string_view rule;  // for failures that name none
  std::string_view claim;
  Status (*run)(Ranks&);
};

// In the order in which they run; the first loads the plug-in, the last one ends it.
const std::vector<CollectivesTest>& collectives_tests();

// Runs them in this rank; an exchange may take `time_limit` seconds. Prints each failure with the rank and its rule,
// and on rank 0 the count. `companions`: for a plug-in that joins by tickets. Returns the exit code of the kit: 0
// nothing failed, 1 something did.
int check_collectives(const std::string& path, const Settings& settings, double time_limit, bool verbose,
                      const Ranks::Companions& companions);

}  // namespace tenon::conformance
