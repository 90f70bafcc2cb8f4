// The implementations of each kind, best first.
#pragma once

#include <span>

#include "sdk/provider/implementation.h"

namespace tenon::provider::opencl {

std::span<const ImplementationList> implementation_lists();

}  // namespace tenon::provider::opencl
