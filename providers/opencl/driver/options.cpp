#include "providers/opencl/driver/options.h"

#include "sdk/provider/error.h"

namespace tenon::provider::opencl {

Options read_options(const ep_host* host) {
  Options options;
  const auto read = [host](const char* key, std::string* value) {
    ep_string text{};
    if (host->config_get(host, to_ep_string(key), &text) == EP_STATUS_OK) *value = to_view(text);
  };
  read("library", &options.library);
  read("build", &options.build);
  return options;
}

}  // namespace tenon::provider::opencl
