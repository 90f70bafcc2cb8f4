// Nothing is wrong with it. It frees a string that the C library allocated, so both must use the same allocator.
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#define BEFORE_DEVICE_COUNT free(strdup("a text"))
#include "sound.h"

EP_PLUGIN_NOTE("copies_text", "1.0.0", 0)

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return sound_query(host, out_ops, error);
}
