// The validation layer sits between the host and one provider and checks the calls of both (../README.md).
#pragma once

#include "loader/loader.h"

namespace tenon::loader {

// Puts the layer's functions in place of `device.ops`. `device` is open and nothing was made from it yet.
void validate_device(OpenDevice& device);

}  // namespace tenon::loader
