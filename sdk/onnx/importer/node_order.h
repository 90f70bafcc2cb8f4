// The order in which the nodes of a graph can run: each behind the nodes whose results it reads.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx_messages.h"

namespace tenon::onnx {

// Positions in `nodes`. The order of the file, if the nodes can run in it; time and memory are linear. `is_there` says
// whether something before the nodes makes the value with a name. `inside` is for errors: "the body of node 4 (Loop)",
// or empty. Errors: invalid_argument with the nodes of a cycle.
std::vector<size_t> node_order(const std::vector<onnx_proto::NodeProto>& nodes,
                               const std::function<bool(std::string_view)>& is_there, const std::string& inside);

}  // namespace tenon::onnx
