// Shared by the operators of ONNX Runtime's own domains.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"
#include "sdk/onnx/importer/node_context.h"

namespace tenon::onnx {

constexpr std::string_view kMicrosoft = "com.microsoft";

// Why the activation in the attribute `activation` of a fused operator is not translated; empty if it is.
std::string activation_why_not(const Node& node);
// Applies the activation `name` ("" for none), an operator of ai.onnx whose attributes in order are `numbers`. Errors:
// invalid_argument (too few numbers).
Tensor activated(NodeContext& n, const Tensor& x, std::string_view name, const std::vector<double>& numbers);
// Applies the activation in the node's attributes `activation` and `activation_params`.
Tensor activated_by_list(NodeContext& n, const Tensor& x);

// Move the channels of x from the last axis to the second one, and back.
Tensor channels_first(const Tensor& x);
Tensor channels_last(const Tensor& x);

}  // namespace tenon::onnx
