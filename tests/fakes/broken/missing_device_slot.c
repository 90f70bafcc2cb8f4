#define BREAK_DEVICE_OPS(ops) (ops)->upload = NULL
#include "sound.h"

EP_PLUGIN_NOTE("missing_device_slot", "1.0.0", 0)

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return sound_query(host, out_ops, error);
}
