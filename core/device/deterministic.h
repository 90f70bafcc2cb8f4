// Deterministic algorithms: the same program with the same inputs gives the same bits in every run. Public.
#pragma once

#include "core/device/export.h"

namespace tenon {

// If `wanted`, every op called and every program prepared from now on gives the same bits for the same inputs on the
// same device. The bits do not depend on the number of threads, on other load, or on earlier runs; random numbers
// depend only on their seeds. Primitives are requested with EP_PRIMITIVE_FLAG_DETERMINISTIC; if a device has no such
// primitive, the next rung of the ladder computes the op. Programs and ops wait for their kernels, whatever
// TENON_COMPILE and CompileOptions::compile say. The cost: some gradients of convolutions are slower, and the first run
// waits. One exception: if a compiler fails or hangs, its kernel is computed op by op, and a warning says so. Programs
// that were prepared earlier do not change. TENON_DETERMINISTIC sets the default. Threads: call it while no other
// thread computes.
TENON_API void use_deterministic_algorithms(bool wanted);
TENON_API bool are_deterministic_algorithms_enabled();

}  // namespace tenon
