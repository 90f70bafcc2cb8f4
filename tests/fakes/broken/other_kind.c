#include "sound.h"

EP_PLUGIN_NOTE_OF_KIND("other_kind", "1.0.0", 0, 99)

/* Would end the process: the loader must not come here. */
__attribute__((constructor)) static void run_at_load(void) { abort(); }

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return sound_query(host, out_ops, error);
}
