// Moves results to the limit of a tolerance, or one step beyond. So a test can check the checker's own limits.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

namespace tenon::mirror {

// The setting `off`: "within,ULPS,EPSILONS,TINY" or "beyond,ULPS,EPSILONS,TINY", a tolerance as in tests/cases. A fifth
// number is the greatest magnitude that a result may have.
struct Off {
  bool given = false;
  bool beyond = false;
  double ulps = 0, epsilons = 0, tiny = 0, most = 0;

  static Off parse(const std::string& text);
};

// Moves every finite element of the outputs away from zero: to the last value that `off` allows, or to the next one
// after it. Integers are exact: they stay, or 1 is added.
void move_outputs(const Off& off, const ep_primitive_desc& desc, void* const* operands);

}  // namespace tenon::mirror
