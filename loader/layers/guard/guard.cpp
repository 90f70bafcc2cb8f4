#include "loader/layers/guard/guard.h"

#include <array>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "loader/host/error.h"
#include "loader/host/host.h"
#include "loader/host/plugin_call.h"
#include "loader/layers/wrap.h"
#include "loader/log/log.h"

namespace tenon::loader {
namespace {

// The tables of the providers. Never destroyed: devices outlive main.
struct Inner {
  ep_device_ops ops{};
  std::string provider;
};
constinit std::array<Inner*, kMostGuarded> inner{};

bool has_table_of(const Inner& known, const OpenDevice& device) {
  return known.provider == device.provider && std::memcmp(&known.ops, &device.ops, sizeof known.ops) == 0;
}

// The result of a function that has thrown.
template <class R, class... Args>
R answer(size_t number, Slot slot, const char* thrown, Args... args) {
  const Status told = thrown_out_of(inner[number]->provider, std::string(slot_name(slot)).c_str(), thrown);
  if constexpr (std::is_same_v<R, ep_status>) {
    if (ep_error** error = last_of(args...); error != nullptr) {
      release_error(std::exchange(*error, make_error(EP_STATUS_INTERNAL, told.message(), told.remedy())));
    }
    return EP_STATUS_INTERNAL;
  } else {
    log(LogTopic::load, LogLevel::error, told.message());
    return R();
  }
}

// One class per table, so that each call finds the provider's function at a constant address.
template <size_t number>
struct Guarding {
  template <Slot slot, class... Args>
  static auto call(Args... args) {
    const auto function = inner[number]->ops.*SlotTraits<slot>::member;
    using R = decltype(function(args...));
    const PluginCall scope(inner[number]->provider.c_str(), slot_names[static_cast<size_t>(slot)].data());
    try {
      return function(args...);
    } catch (const std::exception& exception) {
      return answer<R>(number, slot, exception.what(), args...);
    } catch (...) {
      return answer<R>(number, slot, "something that is not a std::exception", args...);
    }
  }
};

template <size_t... numbers>
constexpr std::array<void (*)(ep_device_ops&), sizeof...(numbers)> wrappers(std::index_sequence<numbers...>) {
  return {wrap_table<Guarding<numbers>>...};
}
constexpr auto kWrap = wrappers(std::make_index_sequence<kMostGuarded>());

}  // namespace

void guard_device(OpenDevice& device) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (size_t number = 0; number < kMostGuarded; ++number) {
    if (inner[number] == nullptr) inner[number] = new Inner{device.ops, device.provider};
    if (!has_table_of(*inner[number], device)) continue;
    kWrap[number](device.ops);
    return;
  }
}

}  // namespace tenon::loader
