#include "loader/registry/plugin.h"

#include <algorithm>

#include "ep_api/ep_names.h"
#include "loader/host/error.h"
#include "loader/layers/guard/guard.h"
#include "loader/layers/validate/services.h"
#include "loader/layers/validate/validate.h"
#include "loader/layers/wrap.h"
#include "loader/log/log.h"
#include "loader/negotiate/negotiate.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

constexpr uint32_t most_devices = 1024;

// Libraries stay mapped: their threads, exit handlers or thread-local destructors may still run.
void keep_for_ever(std::unique_ptr<Library> library) {
  static auto* kept = new std::vector<std::unique_ptr<Library>>;
  if (library) kept->push_back(std::move(library));
}

// The table of a device whose provider was retired: no call reaches the provider any more.
struct Refusing {
  template <Slot slot, class... Args>
  static auto call(Args... args) {
    using Answer = decltype((std::declval<ep_device_ops>().*SlotTraits<slot>::member)(args...));
    if constexpr (!std::is_void_v<Answer>) {
      if (ep_error** error = last_of(args...); error != nullptr) {
        *error = make_error(EP_STATUS_CANCELLED, "the device's provider was retired.", "Open the device again.");
      }
      return Answer{EP_STATUS_CANCELLED};
    }
  }
};

}  // namespace

Plugin::Plugin(std::unique_ptr<HostServices> host, ep_plugin_ops ops, std::unique_ptr<Library> library)
    : host_(std::move(host)), ops_(ops), library_(std::move(library)) {}

Plugin::~Plugin() { shut_down(); }

Result<std::unique_ptr<Plugin>> Plugin::make(const std::string& provider, std::unique_ptr<Library> library,
                                             ep_plugin_query_fn query, const std::string& path,
                                             const std::map<std::string, std::string>& values) {
  auto host = std::make_unique<HostServices>(provider, path, values);
  if (settings().validate != 0) host->put_in_front(validate_services(*host));
  TENON_ASSIGN_OR_RETURN(const ep_plugin_ops ops, negotiate_plugin(*host, query));
  return std::unique_ptr<Plugin>(new Plugin(std::move(host), ops, std::move(library)));
}

Status Plugin::enumerate() {
  keep_for_ever(std::move(library_));
  const std::string& provider = host_->provider();
  uint32_t count = 0;
  TENON_RETURN_IF_ERROR(call_plugin(provider, "device_count",
                                    [&](ep_error** error) { return ops_.device_count(ops_.plugin, &count, error); }));
  if (count > most_devices) {
    return Status(Code::invalid_argument,
                  fmt::format("it claims {} devices; at most {} are possible.", count, most_devices));
  }
  for (uint32_t index = 0; index < count; ++index) {
    ListedDevice listed{fmt::format("{}:{}", provider, index), provider, index, {}, {}};
    Result<DeviceInfo> info = query_device_info(provider, ops_, index);
    if (info.ok()) {
      listed.info = std::move(info).value();
    } else {
      listed.info.unusable_reason = info.status().message();
      listed.info.remedy = info.status().remedy();
    }
    devices_.push_back(std::move(listed));
  }
  if (count > 0) return {};
  return Status(Code::not_found, "it works, but found no device.");
}

Result<OpenDevice*> Plugin::open(uint32_t index) {
  const auto found = open_.find(index);
  return found != open_.end() ? found->second.get() : open_new(index, nullptr);
}

Result<OpenDevice*> Plugin::adopt(uint32_t index, const ep_adopt_desc& desc) {
  const std::string& spelling = devices_.at(index).spelling;
  if (open_.count(index) != 0) {
    return Status(Code::busy, fmt::format("The device {} is open already.", spelling),
                  "Adopt a device before anything else names it, or retire its provider first.");
  }
  const uint64_t taken = devices_[index].info.device_handles;
  const bool known = desc.handle_type > 0 && desc.handle_type < 64 && (taken >> desc.handle_type & 1) != 0;
  if (ops_.device_adopt == nullptr || !known) {
    return Status(Code::unsupported, fmt::format("The device {} opens in a context of no type {}; it takes {}.",
                                                 spelling, ep_handle_name(desc.handle_type), handle_names(taken)));
  }
  return open_new(index, &desc);
}

Result<OpenDevice*> Plugin::open_new(uint32_t index, const ep_adopt_desc* adopt) {
  ListedDevice& listed = devices_.at(index);
  if (!listed.info.usable()) {
    return Status(Code::unsupported,
                  fmt::format("the device {} cannot be used: {}", listed.spelling, listed.info.unusable_reason),
                  listed.info.remedy);
  }
  auto device = std::make_unique<OpenDevice>();
  device->spelling = listed.spelling;
  device->provider = listed.provider;
  device->index = index;
  device->info = listed.info;
  const Status opened = open_device_table(listed.provider, ops_, adopt, *device);
  if (!opened.ok()) {
    const bool defect = !device->info.usable() || opened.code() == Code::internal;
    if (defect) {
      listed.info.unusable_reason = opened.message();
      listed.info.remedy = opened.remedy();
    }
    return opened;
  }
  guard_device(*device);
  if (settings().validate != 0) validate_device(*device);
  OpenDevice* pointer = device.get();
  open_.emplace(index, std::move(device));
  return pointer;
}

void Plugin::close_table(OpenDevice& device) {
  const Status closed = call_plugin(device.provider, "device_close", [&](ep_error**) {
    device.ops.device_close(device.handle);
    return EP_STATUS_OK;
  });
  if (!closed.ok()) log(LogTopic::load, LogLevel::error, closed.message());
}

bool Plugin::close(OpenDevice* device) {
  const auto found =
      std::find_if(open_.begin(), open_.end(), [&](const auto& entry) { return entry.second.get() == device; });
  if (found == open_.end()) return false;
  close_table(*device);
  open_.erase(found);
  return true;
}

void Plugin::retire() {
  static auto* retired = new std::vector<std::unique_ptr<OpenDevice>>;
  for (auto& [index, device] : open_) {
    close_table(*device);
    wrap_table<Refusing>(device->ops);
    retired->push_back(std::move(device));
  }
  open_.clear();
  shut_down();
}

void Plugin::shut_down() {
  if (down_) return;
  down_ = true;
  for (auto& [index, device] : open_) close_table(*device);
  open_.clear();
  const Status stopped = call_plugin(host_->provider(), "shutdown", [&](ep_error**) {
    ops_.shutdown(ops_.plugin);
    return EP_STATUS_OK;
  });
  if (!stopped.ok()) log(LogTopic::load, LogLevel::error, stopped.message());
  if (settings().validate != 0) end_validated_services(host_->table());
  host_->report_leaks();
}

}  // namespace tenon::loader
