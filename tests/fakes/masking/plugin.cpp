// The masking fake as a plug-in. The configuration controls it.
#include "tests/fakes/masking/masking.h"

EP_PLUGIN_NOTE("masking", "0.1.0", 0)

extern "C" ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return tenon::fakes::masking_query(host, out_ops, error);
}
