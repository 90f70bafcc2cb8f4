#include "sound.h"

EP_PLUGIN_NOTE("sound", "9.0.0", 0)

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return sound_query(host, out_ops, error);
}
