// tenon.Device, and functions that concern all devices.

#include "core/device/deterministic.h"
#include "loader/loader.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

nb::dict memory_stats(const Device& device) {
  const memory::Stats stats = device.memory_stats();
  nb::dict made;
  made["live"] = stats.live;
  made["peak"] = stats.peak;
  made["cached"] = stats.cached;
  made["reserved"] = stats.reserved;
  made["limit"] = stats.limit;
  made["packed"] = stats.packed;
  return made;
}

}  // namespace

void add_devices(nb::module_& m) {
  nb::class_<Device>(m, "Device", "One open device. It opens when it is first named.")
      .def(
          "__init__", [](Device* self, const std::string& spelling) { new (self) Device(std::string_view(spelling)); },
          nb::arg("spelling"), nb::call_guard<Unlocked>())
      .def_static("current", &Device::current, "The device of tensors that are made without a device argument.")
      .def_prop_ro("name", &Device::name)
      .def_prop_ro("synchronous", &Device::synchronous)
      .def("synchronize", &Device::synchronize, nb::call_guard<Unlocked>())
      .def("memory_stats", &memory_stats,
           "Bytes by name: live (handed out), peak (the most of them so far), cached (free, kept), reserved (what the "
           "provider gave), limit (TENON_MEMORY_LIMIT, 0: none), packed (weights as kernels want them).")
      .def("__repr__", [](const Device& d) { return fmt::format("tenon.Device('{}')", d.spelling()); })
      .def("__str__", [](const Device& d) { return d.spelling(); })
      .def("__reduce__",
           [](const Device& d) { return nb::make_tuple(nb::type<Device>(), nb::make_tuple(d.spelling())); })
      .def(
          "__eq__",
          [](const Device& d, nb::handle other) {
            const Device* device = held_in<Device>(other.ptr());
            return device != nullptr && *device == d;
          },
          nb::arg("other").none())
      .def("__hash__", [](const Device& d) { return reinterpret_cast<uintptr_t>(d.state()) >> 4; });
  m.attr("device") = m.attr("Device");
  m.def(
      "set_device", [](nb::handle device) { Device::set_current(require_device(device.ptr(), "set_device()")); },
      nb::arg("device").none(), "The device on which this thread makes tensors; None: the process's.");
  m.def(
      "use_deterministic_algorithms", [](bool mode, bool) { use_deterministic_algorithms(mode); }, nb::arg("mode"),
      nb::kw_only(), nb::arg("warn_only") = false,
      "True: each call of an op with the same arguments gives the same bits. Ops never fail for it, so warn_only "
      "changes nothing.");
  m.def("are_deterministic_algorithms_enabled", &are_deterministic_algorithms_enabled,
        "True if use_deterministic_algorithms, or else TENON_DETERMINISTIC, asks for the same bits in each call.");
  m.def("set_num_threads", &set_num_threads, nb::arg("num"),
        "At most this many threads compute. Call it before the first op, or set TENON_THREADS. Errors: Busy if a "
        "device is already open; InvalidArgument below 1.");
  m.def("get_num_threads", &get_num_threads, "The number of threads that compute.");
  m.def(
      "synchronize", [] { tenon::synchronize(); }, nb::call_guard<Unlocked>(), "Waits for all work of all devices.");
}

}  // namespace tenon::python
