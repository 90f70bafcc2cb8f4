// What is worth knowing of a machine's devices beyond the list of them.
#pragma once

#include <vector>

#include "loader/loader.h"

namespace tenon::loader {

// Of `devices` (same hardware marked) and of the candidates they come from: devices that are one piece of hardware;
// that there is no GPU, and what could have been one.
std::vector<Finding> findings_of(const std::vector<ListedDevice>& devices, const std::vector<Candidate>& candidates);

}  // namespace tenon::loader
