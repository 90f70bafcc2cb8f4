// Like traps, but its note does not ask for a child process.
#include <signal.h>

#define BEFORE_DEVICE_COUNT raise(SIGTRAP)
#include "sound.h"

EP_PLUGIN_NOTE("traps_unasked", "1.0.0", 0)

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return sound_query(host, out_ops, error);
}
