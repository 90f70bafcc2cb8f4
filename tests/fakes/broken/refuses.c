#include "sound.h"

EP_PLUGIN_NOTE("refuses", "1.0.0", 0)

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  UNUSED(out_ops);
  if (error) {
    *error = host->error_make(host, EP_STATUS_VERSION, text("this host is too old for me."), text("Use a newer host."));
  }
  return EP_STATUS_VERSION;
}
