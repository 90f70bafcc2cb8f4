// The validation layer: between the host and one provider, it checks what each does to the other (README.md of
// layers/).
#pragma once

#include "loader/loader.h"

namespace tenon::loader {

// Puts the layer's functions in place of `device.ops`. `device` is open; nothing was made from it yet.
void validate_device(OpenDevice& device);

}  // namespace tenon::loader
