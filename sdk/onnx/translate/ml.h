// Shared by the classifiers and regressors of ai.onnx.ml.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {

constexpr std::string_view kMlDomain = "ai.onnx.ml";

// The numbers of the attribute `name` as a tensor on the node's device, which later runs take again.
Tensor kept_tensor(NodeContext& n, std::string_view name, const Dims& dims);

// The features as a matrix [rows, features] in f32; a list becomes one row.
Tensor feature_matrix(NodeContext& n);

// The scores [n, classes] after the transform `name`.
Tensor post_transformed(NodeContext& n, const Tensor& scores, const std::string& name);

// The labels of a classifier, strings or numbers.
class ClassLabels {
 public:
  explicit ClassLabels(NodeContext& n);
  int64_t count() const { return static_cast<int64_t>(words_.empty() ? numbers_.size() : words_.size()); }
  // The labels at `places`, an i64 tensor, on the node's device.
  Value of(NodeContext& n, const Tensor& places) const;
  Value of(NodeContext& n, const std::vector<int64_t>& places) const;

 private:
  std::span<const std::string> words_;
  std::span<const int64_t> numbers_;
};

}  // namespace tenon::onnx
