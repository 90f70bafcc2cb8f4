// Translates OpenCL results for the host.
#pragma once

#include "ep_api/ep_api.h"
#include "providers/opencl/driver/api.h"

namespace tenon::provider::opencl {

const char* result_name(cl_int result);
ep_status status_of(cl_int result);

}  // namespace tenon::provider::opencl
