#include "sound.h"

static const ep_note note __attribute__((section(EP_NOTE_SECTION), used, aligned(4))) = {
    sizeof(EP_NOTE_OWNER),
    sizeof(ep_plugin_note),
    EP_NOTE_TYPE,
    EP_NOTE_OWNER,
    {sizeof(ep_plugin_note), 0, 99, 0, EP_SANITIZER_NONE, "wrong_version", "1.0.0", "none", EP_PLUGIN_KIND_DEVICES, 0}};

/* Would end the process: the loader must not come here. */
__attribute__((constructor)) static void run_at_load(void) { abort(); }

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return sound_query(host, out_ops, error);
}
