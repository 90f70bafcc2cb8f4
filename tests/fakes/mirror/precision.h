// Results as far from the reference as a tolerance allows, or one step further: the checker's own limits, checked.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

namespace tenon::mirror {

// The setting `off`: "within,ULPS,EPSILONS,TINY" or "beyond,ULPS,EPSILONS,TINY", a tolerance as tests/cases states it.
struct Off {
  bool given = false;
  bool beyond = false;
  double ulps = 0, epsilons = 0, tiny = 0;

  static Off parse(const std::string& text);
};

// Moves every finite element of the outputs away from zero: to the last value that `off` allows, or to the one after
// it. Integers are exact: they stay, or one is added.
void move_outputs(const Off& off, const ep_primitive_desc& desc, void* const* operands);

}  // namespace tenon::mirror
