#include <cstdio>
#include <nlohmann/json.hpp>

#include "primitives/text/format.h"
#include "primitives/text/visible.h"
#include "sdk/cli/commands.h"
#include "sdk/onnx/onnx.h"
#include "sdk/report/json_text.h"

namespace tenon::cli {

int check_model(const CheckOptions& options) {
  onnx::Options load;
  load.device = options.device.empty() ? Device::current() : Device(options.device);
  const onnx::Checked checked = onnx::check(options.model, load);
  const auto infos = [](const std::vector<onnx::ValueInfo>& list) {
    nlohmann::json rows = nlohmann::json::array();
    for (const onnx::ValueInfo& info : list) rows.push_back({{"name", info.name}, {"type", onnx::to_string(info)}});
    return rows;
  };
  if (options.json) {
    const nlohmann::json document = {{"model", options.model},
                                     {"device", load.device.spelling()},
                                     {"ir_version", checked.info.ir_version},
                                     {"opset", checked.info.opset},
                                     {"nodes", checked.info.nodes},
                                     {"inputs", infos(checked.inputs)},
                                     {"defaults", infos(checked.defaults)},
                                     {"outputs", infos(checked.outputs)},
                                     {"refusals", checked.refusals}};
    std::printf("%s\n", report::json_text(document).c_str());
    return checked.refusals.empty() ? 0 : 1;
  }
  std::printf("%s: opset %lld, %llu nodes, %llu weights\n", options.model.c_str(),
              static_cast<long long>(checked.info.opset), static_cast<unsigned long long>(checked.info.nodes),
              static_cast<unsigned long long>(checked.info.weights));
  for (const onnx::ValueInfo& info : checked.inputs)
    std::printf("  input  %s: %s\n", visible(info.name).c_str(), onnx::to_string(info).c_str());
  for (const onnx::ValueInfo& info : checked.defaults)
    std::printf("  input  %s: %s, which has a value\n", visible(info.name).c_str(), onnx::to_string(info).c_str());
  for (const onnx::ValueInfo& info : checked.outputs)
    std::printf("  output %s: %s\n", visible(info.name).c_str(), onnx::to_string(info).c_str());
  for (const std::string& line : checked.refusals) std::printf("  cannot run: %s\n", visible(line).c_str());
  if (checked.refusals.empty()) std::printf("It can run on %s.\n", std::string(load.device.spelling()).c_str());
  return checked.refusals.empty() ? 0 : 1;
}

}  // namespace tenon::cli
