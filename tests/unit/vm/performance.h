// Performance: what came of a Program that a Machine carried out, on a thread for each of the program's.
#pragma once

#include <functional>
#include <map>

#include "tests/unit/vm/machine.h"
#include "tests/unit/vm/program.h"

namespace tenon::testing {

struct Performance {
  std::map<int, StorageHandle> buffers;  // alive at the end
  Outcome outcome;                       // without the buffers of the end where something stopped
  Status stopped;                        // the first error that stopped a thread
  uint64_t reused_pending = 0;           // blocks handed out while work on them was pending
};

// Told each error, on the thread that met it, and of what kind of instruction: an answer that is not OK stops the
// thread, except after a read, which gives poison. A buffer that could not be made is absent, and what would use it is
// left out.
using Judge = std::function<Status(Instruction::Kind, const Status&)>;

Performance perform(const Program& program, Machine& machine, const Judge& judge);

}  // namespace tenon::testing
