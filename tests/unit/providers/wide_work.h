// Launches of the cpu provider that are large enough for several threads and must be deterministic, for every kernel
// that uses the thread team.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {

struct Work {
  std::string name;
  ep_primitive_desc desc;
  std::vector<ep_scalar> scalars;
};

std::vector<Work> wide_work();

// Random inputs in [-1, 1], and -9 in the output. The numbers are the same each time.
std::vector<std::vector<float>> operands_of(const Work& work);
// Returns the first operand after a launch.
std::vector<float> result_of(OpenProvider& provider, const Work& work, std::vector<std::vector<float>> operands);

bool equal_bits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace tenon::provider
