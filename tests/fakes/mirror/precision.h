// Moves results to the limit of a tolerance, or one step beyond it, so that a test can check the kit's own limits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::mirror {

// The setting `off`: "within,ULPS,EPSILONS,TINY" or "beyond,ULPS,EPSILONS,TINY", a tolerance as in tests/cases. A fifth
// number is the greatest magnitude that a result may have; 0: any. Four more numbers are a row of a lower tier of
// accuracy.def for unary functions: units in the last place of the result, additional units for each 1 of the
// argument's magnitude, epsilons, and units for the rounding of the reference.
struct Off {
  bool given = false;
  bool beyond = false;
  double ulps = 0, epsilons = 0, tiny = 0, most = 0;
  double units = 0, per_x = 0, absolute = 0, rounding = 0;

  static Off parse(const std::string& text);
};

// Moves every finite element of the outputs away from zero: to the last value that `off` allows, or to the value after
// that. Integers are exact: they stay, or 1 is added. An operand that is NULL is a scalar.
void move_outputs(const Off& off, const ep_primitive_desc& desc, void* const* operands);

// Imitates a device that flushes denormals: computes by `run` on copies of the inputs in which denormals are 0, and
// makes denormal results 0. Kinds that only move elements keep denormals.
Status run_flushed(const ep_primitive_desc& desc, std::vector<void*> operands,
                   const std::function<Status(void* const*)>& run);

}  // namespace tenon::mirror
