#include "sdk/onnx/importer/versions.h"

#include <algorithm>

#include "primitives/text/format.h"
#include "sdk/onnx/importer/parsed_model.h"
#include "sdk/onnx/schema/schema.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// The newest version of the file format that the reader knows. Versions since 8 only add metadata and element types,
// which the reader knows by name.
constexpr int64_t kNewestIrVersion = 14;
// From this version on, a file states the versions of its operators.
constexpr int64_t kIrVersionWithOpsets = 3;

}  // namespace

Opsets read_opsets(const std::vector<onnx_proto::OperatorSetIdProto>& imports) {
  Opsets opsets;
  for (const onnx_proto::OperatorSetIdProto& opset : imports) {
    int64_t& version = opsets.emplace(domain_of(opset.domain), opset.version).first->second;
    version = std::max(version, opset.version);  // if a domain is listed several times, the highest version counts
  }
  return opsets;
}

Opsets read_versions(const onnx_proto::ModelProto& model, ModelInfo* info, std::vector<std::string>* refusals) {
  info->producer = std::string(model.producer_name);
  if (!model.producer_version.empty()) info->producer += fmt::format(" {}", model.producer_version);
  info->domain = std::string(model.domain);
  info->graph = std::string(model.graph->name);
  info->description = std::string(model.doc_string);
  info->version = model.model_version;
  for (const onnx_proto::StringStringEntryProto& entry : model.metadata_props) {
    info->metadata.emplace(entry.key, entry.value);
  }
  info->ir_version = model.ir_version;
  if (model.ir_version < 1) malformed(fmt::format("its IR version is {}; the first is 1", model.ir_version));
  if (model.ir_version > kNewestIrVersion) {
    refusals->push_back(
        fmt::format("the file is of IR version {}; versions up to {} are known.", model.ir_version, kNewestIrVersion));
  }
  Opsets opsets = read_opsets(model.opset_import);
  if (opsets.empty() && model.ir_version >= kIrVersionWithOpsets)
    malformed("it does not state the versions of its operators (opset_import)");
  if (opsets.empty()) opsets[""] = 1;
  info->opset = opsets.count("") != 0 ? opsets[""] : 0;
  if (info->opset > kNewestOpset) {
    refusals->push_back(
        fmt::format("the model needs opset version {} of ai.onnx; versions up to {} are supported. Export it "
                    "with opset_version={}, or convert it with onnx.version_converter.convert_version(model, {}).",
                    info->opset, kNewestOpset, kNewestOpset, kNewestOpset));
  }
  return opsets;
}

}  // namespace tenon::onnx
