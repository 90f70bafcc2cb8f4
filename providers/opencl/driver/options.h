// The settings of the opencl provider: `[provider.opencl]` in the config file.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

namespace tenon::provider::opencl {

struct Options {
  std::string library = "libOpenCL.so.1";  // library: the ICD loader
  std::string build;                       // build: additional options for the driver's compiler
};

Options read_options(const ep_host* host);

}  // namespace tenon::provider::opencl
