#include "core/tensor/version.h"

namespace tenon {

const char* version() { return TENON_VERSION; }

}  // namespace tenon
