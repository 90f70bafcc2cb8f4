#include "sdk/onnx/exporter/node_writer.h"

#include "core/ops/scalar_patch.h"
#include "sdk/onnx/tensors/tensor_data.h"

namespace tenon::onnx {

DType NodeWriter::computed() const {
  for (size_t i = inputs_.size(); i-- > 0;) {
    if (has(i)) return inputs_[i].dtype;
  }
  return results_[0].dtype;
}

std::string NodeWriter::in(size_t i) {
  if (has(i)) return inputs_[i].name;
  if (i >= node_.scalars.size()) return {};
  for (const Patch& patch : node_.patches) {
    if (patch.word != kScalarPatch + i) continue;
    const std::string size = add("Squeeze", {model_.size(patch.size), model_.integers({0})});
    return cast(size, DType::i64, computed());
  }
  return model_.number(node_.scalars[i], computed());
}

std::vector<std::string> NodeWriter::all() {
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs_.size(); ++i) names.push_back(in(i));
  return names;
}

Scalar NodeWriter::scalar(size_t i) const {
  for (const Patch& patch : node_.patches) {
    if (patch.word == kScalarPatch + i) model_.sizes().fix(patch.size);
  }
  return i < node_.scalars.size() ? node_.scalars[i] : Scalar();
}

SymDim NodeWriter::size_of(const int64_t& field) const {
  const auto word = static_cast<uint32_t>(&field - reinterpret_cast<const int64_t*>(node_.attributes.data()));
  for (const Patch& patch : node_.patches) {
    if (patch.word == word) return model_.sizes().resolve(patch.size);
  }
  return SymDim::saturated(field);
}

int64_t NodeWriter::number_of(const int64_t& field) const { return model_.sizes().fix(size_of(field)); }

SymDims NodeWriter::dims(const Operand& operand) const { return model_.sizes().resolve(operand.dims); }

std::vector<int64_t> NodeWriter::fixed_dims(const Operand& operand) const {
  std::vector<int64_t> numbers;
  for (const SymDim each : operand.dims) numbers.push_back(model_.sizes().fix(each));
  return numbers;
}

std::string NodeWriter::cast(const std::string& name, DType from, DType to) {
  if (from == to) return name;
  return add("Cast", {name}, {{"to", int64_t{onnx_type_of(to)}}});
}

}  // namespace tenon::onnx
