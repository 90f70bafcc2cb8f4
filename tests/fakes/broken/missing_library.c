#include "sound.h"

EP_PLUGIN_NOTE("missing_library", "1.0.0", 0)

int tenon_test_absent_function(void);

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return tenon_test_absent_function() ? EP_STATUS_INTERNAL : sound_query(host, out_ops, error);
}
