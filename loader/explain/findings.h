// Findings: facts about a machine's devices that the list of devices does not show.
#pragma once

#include <vector>

#include "loader/loader.h"

namespace tenon::loader {

// The findings about `devices` (whose same_as is set) and the candidates that they come from: which devices are the
// same hardware, and, if there is no GPU, which provider could have had one.
std::vector<Finding> findings_of(const std::vector<ListedDevice>& devices, const std::vector<Candidate>& candidates);

}  // namespace tenon::loader
