#include "tests/fakes/broken/sound.h"

EP_PLUGIN_NOTE("exports_more", "1.0.0", 0)

EP_EXPORT int tenon_test_second_symbol(void);
int tenon_test_second_symbol(void) { return 0; }

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return sound_query(host, out_ops, error);
}
