#include "core/tensor/version.h"
#include "loader/log/log.h"
#include "sdk/c/border.h"
#include "sdk/report/report.h"

using tenon::Code;
using tenon::Device;
using tenon::Error;
namespace c = tenon::c;

static_assert(TENON_LOG_ERROR == EP_LOG_ERROR && TENON_LOG_WARNING == EP_LOG_WARNING && TENON_LOG_INFO == EP_LOG_INFO &&
              TENON_LOG_DEBUG == EP_LOG_DEBUG);

struct tenon_device_list {
  std::vector<tenon::loader::ListedDevice> devices;
  std::string chosen;  // the spelling of the default device; empty: none
};

extern "C" {

const char* tenon_version(void) { return tenon::version(); }
uint32_t tenon_c_version(void) { return (uint32_t{TENON_C_MAJOR} << 16) + TENON_C_MINOR; }

tenon_status tenon_set_setting(const char* key, const char* value, tenon_error** error) {
  return c::guarded("tenon_set_setting", error, [&] {
    tenon::throw_if_error(tenon::loader::set_argument(c::needed(key, "key"), c::needed(value, "value")));
  });
}

void tenon_set_log_sink(tenon_log_sink sink, void* context) {
  if (sink == nullptr) return tenon::loader::set_log_sink({});
  tenon::loader::set_log_sink(
      [sink, context](tenon::loader::LogLevel level, std::string_view topic, std::string_view message) {
        sink(context, static_cast<int32_t>(level), std::string(topic).c_str(), std::string(message).c_str());
      });
}

tenon_status tenon_set_num_threads(int32_t count, tenon_error** error) {
  return c::guarded("tenon_set_num_threads", error, [&] { tenon::set_num_threads(count); });
}

tenon_status tenon_device_list_create(tenon_device_list** out, tenon_error** error) {
  return c::guarded("tenon_device_list_create", error, [&] {
    c::needed(out, "out");
    const tenon::Result<std::string> chosen = tenon::loader::resolve_device("");
    *out = new tenon_device_list{tenon::loader::list_devices(), chosen.ok() ? chosen.value() : std::string()};
  });
}

size_t tenon_device_list_count(const tenon_device_list* list) { return list == nullptr ? 0 : list->devices.size(); }

tenon_status tenon_device_list_get(const tenon_device_list* list, size_t index, tenon_device_info* info,
                                   tenon_error** error) {
  return c::guarded("tenon_device_list_get", error, [&] {
    const size_t count = c::needed(list, "list")->devices.size();
    if (index >= count)
      throw Error(Code::invalid_argument, fmt::format("The index is {}, and the list has {} devices.", index, count));
    const tenon::loader::ListedDevice& device = list->devices[index];
    tenon_device_info known{};
    known.device = device.spelling.c_str();
    known.provider = device.provider.c_str();
    known.name = device.info.name.c_str();
    known.device_class = tenon::report::class_name(device.info.device_class);
    known.usable = device.info.usable() ? 1 : 0;
    known.is_default = device.spelling == list->chosen ? 1 : 0;
    known.reason = device.info.unusable_reason.c_str();
    known.remedy = device.info.remedy.c_str();
    known.memory = tenon::report::memory_bytes(device.info);
    c::write_info(info, known);
  });
}

void tenon_device_list_free(tenon_device_list* list) { delete list; }

tenon_status tenon_doctor(char** out_json, tenon_error** error) {
  return c::guarded("tenon_doctor", error, [&] {
    c::needed(out_json, "out_json");
    *out_json = c::owned_text(tenon::report::json_text(tenon::report::doctor_json()));
  });
}

tenon_status tenon_device_synchronize(const char* device, tenon_error** error) {
  return c::guarded("tenon_device_synchronize", error, [&] { c::device_of(device).synchronize(); });
}

tenon_status tenon_device_memory(const char* device, tenon_memory_info* info, tenon_error** error) {
  return c::guarded("tenon_device_memory", error, [&] {
    const tenon::memory::Stats stats = c::device_of(device).memory_stats();
    tenon_memory_info known{};
    known.live = stats.live;
    known.peak = stats.peak;
    known.cached = stats.cached;
    known.reserved = stats.reserved;
    c::write_info(info, known);
  });
}

tenon_status tenon_device_trim(const char* device, tenon_error** error) {
  return c::guarded("tenon_device_trim", error, [&] { c::device_of(device).trim(); });
}

}  // extern "C"
