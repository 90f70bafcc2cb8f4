// Anomaly mode: notes where ops of forward were called and finds gradients that hold a NaN. Internal.
#pragma once

#include <span>
#include <string>

#include "core/autograd/node.h"
#include "core/device/call_context.h"

namespace tenon::autograd {

// Notes where the op of `node`, which was just made, is called.
void note_call(Node& node);
// ", called by cross_entropy at ..."; empty if nothing was noted.
std::string noted_call(const Node& node);
// Throws invalid_argument if a gradient that `node` returned holds a NaN; unsupported if one has no elements yet.
void look_for_anomalies(const Node& node, std::span<const Tensor> gradients);

}  // namespace tenon::autograd
