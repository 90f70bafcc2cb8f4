#include "sound.h"

static const ep_note note __attribute__((section(EP_NOTE_SECTION), used, aligned(4))) = {
    sizeof(EP_NOTE_OWNER),
    sizeof(ep_plugin_note),
    EP_NOTE_TYPE,
    EP_NOTE_OWNER,
    {sizeof(ep_plugin_note), EP_ABI_MAJOR, EP_ABI_MINOR, 0, EP_SANITIZER_MEMORY, "other_sanitizer", "1.0.0", "none",
     EP_PLUGIN_KIND_DEVICES, 0}};

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return sound_query(host, out_ops, error);
}
