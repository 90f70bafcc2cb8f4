// Nothing is wrong with it. It prints to stdout, which is not the answer, and each call of device_count appends its
// process id to the file that the setting `tally` names.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <unistd.h>

static char tally[4096];

static void count(void) {
  FILE* file = fopen(tally, "a");
  if (file) fprintf(file, "%ld\n", (long)getpid()), fclose(file);
  if (file) fprintf(stdout, "bla bla\n"), fflush(stdout);
}

#define BEFORE_DEVICE_COUNT count()
#include "sound.h"

EP_PLUGIN_NOTE("counted", "1.0.0", EP_NOTE_FLAG_PROBE_IN_CHILD)

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  ep_string value = {NULL, 0};
  if (host->config_get(host, text("tally"), &value) == EP_STATUS_OK && value.size < sizeof tally) {
    memcpy(tally, value.data, value.size);
  }
  return sound_query(host, out_ops, error);
}
