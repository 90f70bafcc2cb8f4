/* A provider that claims whatever graphics devices its configuration tells it to, and computes nothing. */
#include "tests/fakes/broken/sound.h"

#define TEXT_INNER(x) #x
#define TEXT(x) TEXT_INNER(x)
EP_PLUGIN_NOTE(TEXT(GPU_NAME), "1.0.0", 0)

/* The setting `key`, or {NULL, 0}. The plug-in's handle is the host: there is nothing else to keep. */
static ep_string setting(ep_plugin* plugin, const char* key) {
  const ep_host* host = (const ep_host*)plugin;
  ep_string value = {NULL, 0};
  if (host->config_get(host, text(key), &value) != EP_STATUS_OK) value = text("");
  return value;
}

static int is(ep_string value, const char* word) {
  return value.size == strlen(word) && memcmp(value.data, word, value.size) == 0;
}

static int64_t number(ep_string value, int64_t otherwise, int base) {
  char digits[24] = {0};
  if (value.size == 0 || value.size >= sizeof digits) return otherwise;
  memcpy(digits, value.data, value.size);
  return strtoll(digits, NULL, base);
}

static ep_status gpu_count(ep_plugin* plugin, uint32_t* out_count, ep_error** error) {
  const ep_host* host = (const ep_host*)plugin;
  const ep_string driver = setting(plugin, "driver");
  if (driver.size == 0) {
    *out_count = (uint32_t)number(setting(plugin, "devices"), 1, 10);
    return EP_STATUS_OK;
  }
  const int missing = is(driver, "missing");
  if (error != NULL) {
    *error = host->error_make(
        host, missing ? EP_STATUS_NOT_FOUND : EP_STATUS_VERSION,
        text(missing ? "the driver's library libgpudriver.so.2 was not found; versions 2.1 to 2.6 would do."
                     : "the driver is of version 1.9; versions 2.1 to 2.6 would do."),
        text(missing ? "Install the driver, and look whether the card is plugged in." : "Install a newer driver."));
  }
  return missing ? EP_STATUS_NOT_FOUND : EP_STATUS_VERSION;
}

static ep_status gpu_info(ep_plugin* plugin, uint32_t index, ep_device_info* out, ep_error** error) {
  const ep_string name = setting(plugin, "name"), kind = setting(plugin, "class"), why = setting(plugin, "unusable");
  const ep_status status = device_info(NULL, index, out, error);
  out->name = name.size != 0 ? name : text("a pretended card");
  out->device_class = is(kind, "software")     ? EP_DEVICE_CLASS_SOFTWARE
                      : is(kind, "integrated") ? EP_DEVICE_CLASS_INTEGRATED
                                               : EP_DEVICE_CLASS_DISCRETE;
  memset(out->uuid, (int)number(setting(plugin, "uuid"), 0, 16), sizeof out->uuid);
  if (out->uuid[0] != 0) out->uuid[15] = (uint8_t)(out->uuid[15] + index);
  const int64_t bus = number(setting(plugin, "bus"), -1, 16);
  if (bus >= 0) out->pci[0] = out->pci[2] = out->pci[3] = 0;
  if (bus >= 0) out->pci[1] = bus + index;
  if (why.size != 0) {
    out->unusable_reason = why;
    out->remedy = text("Use another card.");
  }
  return status;
}

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  const ep_status status = sound_query(host, out_ops, error);
  out_ops->plugin = (ep_plugin*)(uintptr_t)host;
  out_ops->device_count = gpu_count;
  out_ops->device_info = gpu_info;
  return status;
}
