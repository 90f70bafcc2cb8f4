#include "providers/vulkan/driver/options.h"

#include <fmt/core.h>

#include <charconv>

#include "sdk/provider/error.h"

namespace tenon::provider::vulkan {
namespace {

// The text of setting `key`, or `otherwise` if the setting is absent.
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

// Reads a setting of two words. An absent setting leaves `value` empty.
ep_status read_choice(const ep_host* host, const char* key, const char* yes, const char* no, std::optional<bool>* value,
                      ep_error** error) {
  if (text_of(host, key, "").empty()) return EP_STATUS_OK;
  bool chosen = true;
  const ep_status status = read_word(host, key, yes, no, &chosen, error);
  if (status == EP_STATUS_OK) *value = chosen;
  return status;
}

ep_status read_number(const ep_host* host, const char* key, uint32_t least, uint32_t* value, ep_error** error) {
  const std::string text = text_of(host, key, fmt::format("{}", *value));
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, *value);
  if (parsed.ec == std::errc() && parsed.ptr == end && *value >= least) return EP_STATUS_OK;
  return fail(host, error, EP_STATUS_INVALID_ARGUMENT,
              "The setting %s of provider vulkan is '%s'; it must be a number of at least %u.", key, text.c_str(),
              least);
}

}  // namespace

ep_status read_options(const ep_host* host, Options* out_options, ep_error** error) {
  Options options;
  options.library = text_of(host, "library", options.library);
  ep_status status = read_word(host, "validation", "on", "off", &options.validation, error);
  if (status == EP_STATUS_OK) status = read_word(host, "barriers", "on", "off", &options.barriers, error);
  if (status == EP_STATUS_OK) status = read_word(host, "features", "baseline", "all", &options.baseline, error);
  if (status != EP_STATUS_OK) return status;
  status = read_number(host, "batch", 1, &options.batch, error);
  if (status == EP_STATUS_OK) status = read_number(host, "work", 1, &options.work, error);
  if (status == EP_STATUS_OK) status = read_choice(host, "packs", "on", "off", &options.packs, error);
  if (status != EP_STATUS_OK) return status;
  *out_options = options;
  return EP_STATUS_OK;
}

}  // namespace tenon::provider::vulkan
