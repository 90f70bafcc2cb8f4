#include <stdlib.h>

#define BEFORE_DEVICE_COUNT exit(3)
#include "sound.h"

EP_PLUGIN_NOTE("exits_3", "1.0.0", EP_NOTE_FLAG_PROBE_IN_CHILD)

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return sound_query(host, out_ops, error);
}
