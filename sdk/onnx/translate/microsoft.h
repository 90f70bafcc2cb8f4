// What the operators of ONNX Runtime's own domains share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"
#include "sdk/onnx/importer/node_context.h"

namespace tenon::onnx {

constexpr std::string_view kMicrosoft = "com.microsoft";

// Why the activation that the attribute `activation` of a fused operator names is not translated; empty if it is.
std::string activation_why_not(const Node& node);
// `x` after the activation of that name ("" for none), an operator of ai.onnx, with its attributes in order as
// `numbers`. Errors: invalid_argument (too few numbers).
Tensor activated(NodeContext& n, const Tensor& x, std::string_view name, const std::vector<double>& numbers);
// The same with the node's attributes `activation` and `activation_params`.
Tensor activated_by_list(NodeContext& n, const Tensor& x);

// The channels of x as its second axis, from its last axis, and back.
Tensor channels_first(const Tensor& x);
Tensor channels_last(const Tensor& x);

}  // namespace tenon::onnx
