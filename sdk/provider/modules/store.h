// Binaries that the host keeps from run to run (host->blob_put), under everything that they were made from.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

namespace tenon::provider {

// The binary that was made from `source`, of which `source` says all: text, options, compiler, processor. Empty: none
// is kept, or what is kept is damaged or of another source.
std::string kept_binary(const ep_host* host, const std::string& source);
void keep_binary(const ep_host* host, const std::string& source, const std::string& binary);

}  // namespace tenon::provider
