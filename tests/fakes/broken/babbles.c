// Writes garbage to every open file descriptor, including the pipe for the answer.
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

static void babble(void) {
  int i = 0;
  for (i = 1; i < 64; ++i) {
    if (write(i, "bla bla\n", 8) != 8) continue;
  }
}

#define BEFORE_DEVICE_COUNT babble()
#include "sound.h"

EP_PLUGIN_NOTE("babbles", "1.0.0", EP_NOTE_FLAG_PROBE_IN_CHILD)

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return sound_query(host, out_ops, error);
}
