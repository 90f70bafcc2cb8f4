#include "providers/vulkan/driver/options.h"

#include <charconv>

#include "sdk/provider/error.h"

namespace tenon::provider::vulkan {
namespace {

// The text of setting `key`, or `otherwise`.
std::string text_of(const ep_host* host, const char* key, const std::string& otherwise) {
  ep_string text{};
  if (host->config_get(host, to_ep_string(key), &text) != EP_STATUS_OK) return otherwise;
  return std::string(to_view(text));
}

ep_status read_word(const ep_host* host, const char* key, const char* yes, const char* no, bool* value,
                    ep_error** error) {
  const std::string text = text_of(host, key, *value ? yes : no);
  if (text != yes && text != no) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT,
                "The setting %s of provider vulkan is '%s'; it may be '%s' or '%s'.", key, text.c_str(), yes, no);
  }
  *value = text == yes;
  return EP_STATUS_OK;
}

}  // namespace

ep_status read_options(const ep_host* host, Options* out_options, ep_error** error) {
  Options options;
  options.library = text_of(host, "library", options.library);
  ep_status status = read_word(host, "validation", "on", "off", &options.validation, error);
  if (status == EP_STATUS_OK) status = read_word(host, "barriers", "on", "off", &options.barriers, error);
  if (status == EP_STATUS_OK) status = read_word(host, "features", "baseline", "all", &options.baseline, error);
  if (status != EP_STATUS_OK) return status;
  const std::string batch = text_of(host, "batch", std::to_string(options.batch));
  const char* end = batch.data() + batch.size();
  const auto parsed = std::from_chars(batch.data(), end, options.batch);
  if (parsed.ec != std::errc() || parsed.ptr != end || options.batch == 0) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT,
                "The setting batch of provider vulkan is '%s'; it must be a number from 1 on.", batch.c_str());
  }
  *out_options = options;
  return EP_STATUS_OK;
}

}  // namespace tenon::provider::vulkan
