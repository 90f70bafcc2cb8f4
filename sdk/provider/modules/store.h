// Binaries that the host keeps for later runs (host->blob_put). The key names everything on which a binary depends.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

namespace tenon::provider {

// Returns the stored binary of `source`, which names text, options, compiler and processor. Empty if none is stored, or
// if the stored one is damaged or has another source.
std::string kept_binary(const ep_host* host, const std::string& source);
void keep_binary(const ep_host* host, const std::string& source, const std::string& binary);

}  // namespace tenon::provider
