#include "providers/cpu/onednn/version.h"

#include <dnnl.h>

namespace tenon::provider::cpu {

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
}

}  // namespace tenon::provider::cpu
