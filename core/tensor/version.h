#pragma once

#include "core/device/export.h"

namespace tenon {

// The version of the running library, such as "0.1.0". It may be newer than the headers that the caller was compiled
// against.
TENON_API const char* version();

}  // namespace tenon
