// The asynchronous fake as a plug-in. A violation ends the process.
#include "tests/fakes/async/control.h"

EP_PLUGIN_NOTE("async", "0.1.0", 0)

extern "C" ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  tenon::fakes::async_control().abort_on_violation = true;
  return tenon::fakes::async_query(host, out_ops, error);
}
