// Converts a launch scalar to one element of a dtype.
#pragma once

#include "ep_api/ep_api.h"

namespace tenon::provider::cpu {

// Writes dtype_size(dtype) bytes to `to`.
void write_scalar(const ep_scalar& scalar, int32_t dtype, void* to);

}  // namespace tenon::provider::cpu
