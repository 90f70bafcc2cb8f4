// The version of the library.
#pragma once

#include "core/device/export.h"

namespace tenon {

// "0.1.0": of the library as it runs, which may be newer than the headers it was compiled against.
TENON_API const char* version();

}  // namespace tenon
