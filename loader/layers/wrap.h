// A layer: functions around the functions of a provider's device. For each function that the provider has, the new
// table has a function that calls `Layer::call<slot>(arguments...)`. The layer decides what this does and where it
// finds the provider's function. A slot that is NULL stays NULL.
//
//   struct Counting {
//     template <Slot slot, class... Args>
//     static auto call(Args... args) { ++calls[slot]; return (inner_of(args...).*SlotTraits<slot>::member)(args...); }
//   };
//   wrap_table<Counting>(ops);
//
// Includes only ep_api, so that tests can use it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "ep_api/ep_api.h"

namespace tenon::loader {

enum class Slot : uint8_t {
#define TENON_DEVICE_SLOT(name, required) name,
#include "loader/negotiate/device_slots.def"
#undef TENON_DEVICE_SLOT
};

constexpr std::string_view slot_names[] = {
#define TENON_DEVICE_SLOT(name, required) #name,
#include "loader/negotiate/device_slots.def"
#undef TENON_DEVICE_SLOT
};
constexpr size_t slot_count = sizeof slot_names / sizeof slot_names[0];
constexpr std::string_view slot_name(Slot slot) { return slot_names[static_cast<size_t>(slot)]; }

// `member`: the table's member of that slot.
template <Slot slot>
struct SlotTraits;
#define TENON_DEVICE_SLOT(name, required)                \
  template <>                                            \
  struct SlotTraits<Slot::name> {                        \
    static constexpr auto member = &ep_device_ops::name; \
  };
#include "loader/negotiate/device_slots.def"
#undef TENON_DEVICE_SLOT

// The last argument: `error`, if the function returns a status.
template <class... Args>
auto last_of(Args... args) {
  return std::get<sizeof...(Args) - 1>(std::tie(args...));
}

template <class Layer, Slot slot, class Function>
struct LayerEntry;
template <class Layer, Slot slot, class R, class... Args>
struct LayerEntry<Layer, slot, R (*)(Args...)> {
  static R enter(Args... args) { return Layer::template call<slot>(args...); }
};

template <class Layer>
void wrap_table(ep_device_ops& table) {
#define TENON_DEVICE_SLOT(name, required) \
  if (table.name != nullptr) table.name = LayerEntry<Layer, Slot::name, decltype(table.name)>::enter;
#include "loader/negotiate/device_slots.def"
#undef TENON_DEVICE_SLOT
}

}  // namespace tenon::loader
