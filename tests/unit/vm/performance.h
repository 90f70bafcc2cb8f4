// Performance: the result of a Program on a Machine. Each thread of the program has its own thread.
#pragma once

#include <functional>
#include <map>

#include "tests/unit/vm/machine.h"
#include "tests/unit/vm/program.h"

namespace tenon::testing {

struct Performance {
  std::map<int, StorageHandle> buffers;  // alive at the end
  Outcome outcome;                       // without the final buffers if a thread stopped
  Status stopped;                        // the first error that stopped a thread
  uint64_t reused_pending = 0;           // blocks handed out while work on them was pending
};

// Called for each error, with the kind of its instruction, on the thread that met it. If it returns an error, the
// thread stops, except after a read, which then gives poison. A buffer that could not be made is missing, and
// instructions that need it are skipped.
using Judge = std::function<Status(Instruction::Kind, const Status&)>;

Performance perform(const Program& program, Machine& machine, const Judge& judge);

}  // namespace tenon::testing
