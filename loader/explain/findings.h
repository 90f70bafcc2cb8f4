// Findings: facts about a machine's devices that the list of devices does not show.
#pragma once

#include <vector>

#include "loader/loader.h"

namespace tenon::loader {

// The findings of `devices` (whose same_as is set) and of the candidates they come from: which devices are one piece of
// hardware; that there is no GPU, and which provider could have had one.
std::vector<Finding> findings_of(const std::vector<ListedDevice>& devices, const std::vector<Candidate>& candidates);

}  // namespace tenon::loader
