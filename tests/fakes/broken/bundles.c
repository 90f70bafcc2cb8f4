#include "sound.h"

EP_PLUGIN_NOTE(BUNDLES_NAME, "1.0.0", 0)

int tenon_test_absent_function(void);

// Does what the constructor that -ffast-math links does: sets flush-to-zero and denormals-are-zero.
__attribute__((constructor)) static void flush_to_zero(void) {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#endif
}

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return tenon_test_absent_function() ? EP_STATUS_INTERNAL : sound_query(host, out_ops, error);
}
