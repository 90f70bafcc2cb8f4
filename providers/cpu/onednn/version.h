// The version of oneDNN this provider runs on.
#pragma once

#include <string>

namespace tenon::provider::cpu {

// "2.6.3"
std::string onednn_version();

}  // namespace tenon::provider::cpu
