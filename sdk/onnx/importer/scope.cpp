#include "sdk/onnx/importer/scope.h"

#include "primitives/text/format.h"
#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

std::string domain_of(std::string_view name) { return name == "ai.onnx" ? std::string() : std::string(name); }

std::string key_of(std::string_view domain, std::string_view name, std::string_view overload) {
  return fmt::format("{}\n{}\n{}", domain_of(domain), name, overload);
}

void Scope::bind(std::string_view name, int32_t id, const std::string& by) {
  if (values.emplace(std::string(name), id).second) return;
  malformed(fmt::format("the value '{}' is computed a second time, by {}", name, by));
}

const int32_t* Scope::find(std::string_view name) const {
  for (const Scope* at = this; at != nullptr; at = at->outer) {
    const auto found = at->values.find(name);
    if (found != at->values.end()) return &found->second;
  }
  return nullptr;
}

}  // namespace tenon::onnx
