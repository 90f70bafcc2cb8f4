// Deterministic algorithms: the same program on the same inputs gives the same bits, run after run. Public.
#pragma once

#include "core/device/export.h"

namespace tenon {

// From now on every op that is called, and every program that is prepared, gives the same bits for the same inputs on
// the same device, whatever the number of threads is, what else the machine does, and how often the program ran before;
// random numbers as their generators were seeded. So primitives are demanded with EP_PRIMITIVE_FLAG_DETERMINISTIC
// (where a device has no such one, the next rung of the ladder computes the op), and programs and ops wait for their
// kernels, whatever TENON_COMPILE and CompileOptions::compile say. Price: some gradients of convolutions are slower,
// and the first run waits. A compiler that fails or hangs is the exception: its kernel is then computed op by op, and a
// warning says so. Programs that were prepared before stay as they are. The default is TENON_DETERMINISTIC's.
// Threads: call it while no other thread computes.
TENON_API void use_deterministic_algorithms(bool wanted);
TENON_API bool are_deterministic_algorithms_enabled();

}  // namespace tenon
