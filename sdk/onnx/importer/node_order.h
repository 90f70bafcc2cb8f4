// Sorts the nodes of a graph so that each comes after the nodes whose results it reads.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx_messages.h"

namespace tenon::onnx {

// Returns positions in `nodes`: the order of the file if the nodes can run in it. Linear in time and memory. `is_there`
// returns true for names of values that exist before the first node. `inside` is for errors: "the body of node 4
// (Loop)", or empty. Errors: invalid_argument with the nodes of a cycle.
std::vector<size_t> node_order(const std::vector<onnx_proto::NodeProto>& nodes,
                               const std::function<bool(std::string_view)>& is_there, const std::string& inside);

}  // namespace tenon::onnx
