#include "sound.h"

EP_PLUGIN_NOTE("short_struct", "1.0.0", 0)

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  const ep_status status = sound_query(host, out_ops, error);
  out_ops->struct_size = offsetof(ep_plugin_ops, device_count);
  return status;
}
