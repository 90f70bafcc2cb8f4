// The tests for plug-ins that move data between processes. They check the rules of ep_api/COLLECTIVES.md.
//
//   mpirun -n 3 tenon conform libtenon_mpi.so
//   mpirun -n 2 tenon conform libtenon_nccl.so --beside libtenon_mpi.so --devices libtenon_cuda.so
//
// Every rank runs all tests in one process and in the same order, since all ranks take part in each exchange. Tests
// that need two ranks are skipped if there is only one.
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
  std::string_view rule;  // for failures that name no rule
  std::string_view claim;
  Status (*run)(Ranks&);
};

// The tests in the order in which they run. The first loads the plug-in, the last shuts it down.
const std::vector<CollectivesTest>& collectives_tests();

// Runs all tests in this rank. An exchange may take `time_limit` seconds. Prints each failure with the rank and its
// rule, and on rank 0 the counts. `companions` is for a plug-in that joins by tickets. Returns the exit code of the
// kit: 0 if nothing failed, else 1.
int check_collectives(const std::string& path, const Settings& settings, double time_limit, bool verbose,
                      const Ranks::Companions& companions);

}  // namespace tenon::conformance
