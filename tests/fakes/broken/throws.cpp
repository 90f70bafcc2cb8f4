#include <stdexcept>

#include "ep_api/ep_api.h"

EP_PLUGIN_NOTE("throws", "1.0.0", 0)

extern "C" ep_status ep_plugin_query_v0(const ep_host*, ep_plugin_ops*, ep_error**) {
  throw std::runtime_error("the query went wrong");
}
