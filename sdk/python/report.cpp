// Facts about this machine and process: tenon.devices, and the data that tenon/reporting.py and tenon/profiling.py
// print.

#include <algorithm>
#include <string>
#include <utility>

#include "core/device/trace.h"
#include "core/interpreter/execution_report.h"
#include "core/tensor/version.h"
#include "loader/loader.h"
#include "loader/search/search.h"
#include "loader/settings/settings.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

using loader::ListedDevice;

std::string_view class_of(const ListedDevice& device) {
  switch (device.info.device_class) {
    case EP_DEVICE_CLASS_DISCRETE: return "discrete";
    case EP_DEVICE_CLASS_INTEGRATED: return "integrated";
    case EP_DEVICE_CLASS_CPU: return "cpu";
    case EP_DEVICE_CLASS_SOFTWARE: return "software";
    case EP_DEVICE_CLASS_ACCELERATOR: return "accelerator";
    default: return "other";
  }
}

uint64_t memory_of(const ListedDevice& device) {
  uint64_t bytes = 0;
  for (const loader::MemoryPool& pool : device.info.pools) bytes = std::max(bytes, pool.size);
  return bytes;
}

nb::list devices() {
  std::vector<ListedDevice> listed;
  {
    const Unlocked unlocked;
    listed = loader::list_devices();
  }
  nb::list list;
  for (ListedDevice& each : listed) list.append(std::move(each));
  return list;
}

nb::dict candidate(const loader::Candidate& found) {
  nb::dict made;
  made["provider"] = found.provider;
  made["path"] = found.path;
  made["source"] = found.source;
  made["version"] = found.version;
  made["stage"] = text_of(loader::stage_name(found.stage));
  made["code"] = text_of(code_name(found.code));
  made["sentence"] = found.sentence;
  made["remedy"] = found.remedy;
  return made;
}

nb::list settings_used(const loader::Settings& settings) {
  nb::list rows;
  for (const loader::SettingRow& row : loader::setting_rows()) {
    const auto origin = settings.origins.find(row.key);
    if (origin == settings.origins.end()) continue;
    nb::dict made;
    made["key"] = text_of(row.key);
    made["variable"] = text_of(row.variable);
    made["value"] = origin->second.text;
    made["level"] = text_of(loader::level_name(origin->second.level));
    made["where"] = origin->second.where;
    rows.append(made);
  }
  return rows;
}

nb::dict report() {
  nb::list candidates, folders, findings, warnings, files;
  for (const loader::Candidate& each : loader::explain()) candidates.append(candidate(each));
  for (const loader::SearchedFolder& each : loader::searched_folders()) {
    nb::dict made;
    made["path"] = each.path;
    made["source"] = each.source;
    made["candidates"] = each.candidates;
    made["why_not"] = each.status.message();
    folders.append(made);
  }
  for (const loader::Finding& each : loader::findings()) {
    findings.append(nb::make_tuple(each.sentence, each.remedy));
  }
  const loader::Settings& settings = loader::settings();
  for (const std::string& each : settings.warnings) warnings.append(each);
  for (const std::string& each : settings.config_files) files.append(each);
  const Result<std::string> resolved = loader::resolve_device("");
  nb::dict made;
  made["version"] = text_of(version());
  made["threads"] = loader::thread_limit();
  made["candidates"] = candidates;
  made["folders"] = folders;
  made["findings"] = findings;
  made["devices"] = devices();
  made["settings"] = settings_used(settings);
  made["settings_error"] = settings.status.message();
  made["warnings"] = warnings;
  made["config_files"] = files;
  made["default_device"] = resolved.ok() ? resolved.value() : std::string();
  made["default_device_by"] = loader::describe_origin("device", settings.origins.at("device"));
  made["default_device_error"] = resolved.status().message();
  made["default_device_remedy"] = resolved.status().remedy();
  return made;
}

// Every op that has run in this process, with its implementation and counts.
nb::list executions() {
  nb::list rows;
  for (const ExecutionEntry& each : execution_report()) {
    nb::dict made;
    made["op"] = each.op;
    made["device"] = each.device;
    made["implementation"] = each.implementation;
    made["rung"] = text_of(rung_name(each.rung));
    made["tier"] = text_of(each.tier);
    made["launches"] = each.launches;
    made["bytes_copied"] = each.bytes_copied;
    rows.append(made);
  }
  return rows;
}

// The spans of the running trace: (name, category, detail, begin and end in nanoseconds, track).
nb::list spans_of_trace() {
  nb::list made;
  for (const TraceSpan& each : trace_spans()) {
    made.append(nb::make_tuple(text_of(each.name), text_of(each.category), text_of(each.detail), each.begin, each.end,
                               each.track));
  }
  return made;
}

void end_trace() {
  const Status status = trace_end();
  if (!status.ok()) throw Error(status);
}

}  // namespace

void add_report(nb::module_& m) {
  nb::class_<ListedDevice>(m, "ListedDevice", "A device that a provider has, usable or not.")
      .def_ro("spelling", &ListedDevice::spelling, "The name that opens it: tenon.Device(device.spelling).")
      .def_ro("provider", &ListedDevice::provider)
      .def_ro("index", &ListedDevice::index)
      .def_ro("same_as", &ListedDevice::same_as, "The spelling of another entry for the same hardware, or empty.")
      .def_prop_ro("name", [](const ListedDevice& d) { return d.info.name; })
      .def_prop_ro("kind", [](const ListedDevice& d) { return text_of(class_of(d)); })
      .def_prop_ro("usable", [](const ListedDevice& d) { return d.info.usable(); })
      .def_prop_ro("unusable_reason", [](const ListedDevice& d) { return d.info.unusable_reason; })
      .def_prop_ro("remedy", [](const ListedDevice& d) { return d.info.remedy; })
      .def_prop_ro("synchronous", [](const ListedDevice& d) { return d.info.synchronous(); })
      .def_prop_ro("threads", [](const ListedDevice& d) { return d.info.threads; })
      .def_prop_ro("memory", &memory_of, "Bytes of its largest pool; 0: unknown.")
      .def("__repr__", [](const ListedDevice& d) {
        return fmt::format("<{} {} ({}){}>", d.spelling, d.info.name, class_of(d),
                           d.info.usable() ? "" : fmt::format(", not usable: {}", d.info.unusable_reason));
      });
  m.def("devices", &devices, "Every device of every provider that is allowed, usable or not.");
  m.def("_report", &report);
  m.def("_executions", &executions);
  m.def("_trace_begin", &trace_begin);
  m.def("_trace_end", &end_trace);
  m.def("_trace_spans", &spans_of_trace);
  m.def("_add_plugin_folder", [](std::string path) { loader::add_plugin_folder(std::move(path), "a package"); });
}

}  // namespace tenon::python
