#include "ep_api/ep_api.h"

EP_PLUGIN_NOTE("missing_symbol", "1.0.0", 0)
