// Reports of the tool and the C API, as JSON: devices, the findings of the doctor, the launches of a run.
#pragma once

#include <string>
#include <vector>

#include "loader/loader.h"
#include "sdk/onnx/onnx.h"
#include "sdk/report/json_text.h"

namespace tenon::report {

// "discrete", "cpu", ...
const char* class_name(int32_t device_class);
// The bytes of the largest memory pool; 0 if no pool states its size.
uint64_t memory_bytes(const loader::DeviceInfo& info);

// `chosen` is the spelling of the default device; empty if there is no default device.
nlohmann::json device_json(const loader::ListedDevice& device, const std::string& chosen);
nlohmann::json executions_json(const std::vector<onnx::NodeExecution>& executions);
// Every candidate and how far it came, the devices, the settings and their sources. Loads all providers.
nlohmann::json doctor_json();

}  // namespace tenon::report
